// Prints the names of the first cache that transformers.js makes for each of the configs that it reads: {name: [inputs]}.
import { readFileSync } from 'node:fs';
import { getCacheNames } from './node_modules/@huggingface/transformers/src/configs.js';

const configs = JSON.parse(readFileSync(0, 'utf-8'));
console.log(JSON.stringify(Object.fromEntries(Object.entries(configs).map(([name, config]) => [name, [...getCacheNames(config)]]))));
