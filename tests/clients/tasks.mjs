// What the tests do with transformers.js, in Node.js and in the browser alike.
const arrays = {
  int64: (values) => BigInt64Array.from(values, BigInt),
  float32: (values) => Float32Array.from(values),
};

// Tensors travel as {type, dims, data}.
export const unpacked = ({ Tensor }, inputs) =>
  Object.fromEntries(
    Object.entries(inputs).map(([name, { type, dims, data }]) => [name, new Tensor(type, arrays[type](data), dims)]),
  );
const packed = ({ dims, data }) => ({ dims, data: Array.from(data, Number) });

const generate = (Auto) => async (transformers, name, inputs, { dtype, ...options }) => {
  const model = await transformers[Auto].from_pretrained(name, dtype ? { dtype } : {});
  const tokens = await model.generate({ ...unpacked(transformers, inputs), do_sample: false, ...options });
  return { tokens: packed(tokens) };
};

const forward = (Auto) => async (transformers, name, inputs) => {
  const model = await transformers[Auto].from_pretrained(name);
  const outputs = await model(unpacked(transformers, inputs));
  return Object.fromEntries(Object.entries(outputs).map(([key, value]) => [key, packed(value)]));
};

export const tasks = {
  'text-generation': generate('AutoModelForCausalLM'),
  translation: generate('AutoModelForSeq2SeqLM'),
  transcription: generate('AutoModelForSpeechSeq2Seq'),
  description: generate('AutoModelForImageTextToText'),
  features: forward('AutoModel'),
  'image-classification': forward('AutoModelForImageClassification'),

  // From words to words, through the tokenizer.
  'generated text': async ({ pipeline }, name, { text }, { dtype, ...options }) => {
    const generator = await pipeline('text-generation', name, dtype ? { dtype } : {});
    const [{ generated_text }] = await generator(text, { do_sample: false, ...options });
    return { text: generated_text };
  },
  'texts by type': async (transformers, name, { text, types }, options) => {
    const texts = {};
    for (const dtype of types)
      texts[dtype] = (await tasks['generated text'](transformers, name, { text }, { dtype, ...options })).text;
    return { texts };
  },
  'features of text': async ({ pipeline }, name, { text }) => {
    const extractor = await pipeline('feature-extraction', name);
    return { features: packed(await extractor(text)) };
  },
  // From the picture to labels, through the image processor.
  'labels of a picture': async ({ pipeline, RawImage }, name, { data, width, height }) => {
    const classifier = await pipeline('image-classification', name);
    const image = new RawImage(Uint8ClampedArray.from(data), width, height, 3);
    return { labels: await classifier(image, { top_k: 3 }) };
  },
};
