// Prints the model classes of transformers.js: {class: [[files it opens], whether it generates, [inputs of generate], what
// it calls the grid of a picture]}.
import * as transformers from '@huggingface/transformers';

const { env, LogLevel, ModelRegistry, PreTrainedModel } = transformers;
env.logLevel = LogLevel.NONE;
const classes = {};
for (const [name, value] of Object.entries(transformers)) {
  if (!(value?.prototype instanceof PreTrainedModel)) continue;
  const config = { architectures: [name], model_type: 'none' };
  const files = await ModelRegistry.get_model_files('none', { config, dtype: 'fp32' });
  const graphs = files.filter((file) => file.endsWith('.onnx')).map((file) => file.slice('onnx/'.length, -'.onnx'.length));
  const model = files.includes('generation_config.json') ? new value({ ...config, decoder: {} }, {}, {}) : null;
  classes[name] = [graphs.sort(), model !== null, model?.forward_params ?? [], model?.image_grid_thw_name];
}
console.log(JSON.stringify(classes));
