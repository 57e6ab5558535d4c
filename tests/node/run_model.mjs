// Runs an ONNX model in onnxruntime-node: reads {model, feeds} as JSON, prints the outputs as JSON.
import { readFileSync } from 'node:fs';
import ort from 'onnxruntime-node';

const arrays = {
  int64: (values) => BigInt64Array.from(values, BigInt),
  float32: (values) => Float32Array.from(values),
};

const { model, feeds } = JSON.parse(readFileSync(0, 'utf-8'));
const session = await ort.InferenceSession.create(model);
const tensors = {};
for (const [name, { type, data, dims }] of Object.entries(feeds)) {
  tensors[name] = new ort.Tensor(type, arrays[type](data), dims);
}
const results = await session.run(tensors);
const printed = {};
for (const [name, tensor] of Object.entries(results)) {
  printed[name] = { dims: tensor.dims, data: Array.from(tensor.data, Number) };
}
console.log(JSON.stringify(printed));
