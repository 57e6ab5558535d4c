// Runs an exported folder in transformers.js as a user would, with nothing said of files and types: reads
// {folder, task, inputs, options} as JSON, prints {name: {dims, data}} as JSON.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import * as transformers from '@huggingface/transformers';
import { tasks } from './tasks.mjs';

const { folder, task, inputs, options } = JSON.parse(readFileSync(0, 'utf-8'));
transformers.env.allowRemoteModels = false;
transformers.env.localModelPath = path.dirname(folder);
console.log(JSON.stringify(await tasks[task](transformers, path.basename(folder), inputs, options ?? {})));
