"""transformers.js on onnxruntime-web, in headless Chromium, runs what `--for transformers.js` writes."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from browser import run_in_browser
from exported import built, export_one_graph, generated, prompt, row_of, save_tokenizer

from modelport.contracts import export_for_client

CLIENT = "transformers.js"


def test_a_language_model_tells_what_eager_pytorch_tells(packages: Path, tmp_path: Path) -> None:
    folder = tmp_path / "qwen3"
    tokenizer = save_tokenizer(folder)
    model = built(row_of("qwen3", vocab_size=len(tokenizer)))
    export_for_client(CLIENT, model, {"input_ids": prompt(6)}, folder)
    text = "the brown fox"
    want = generated(model, 12, input_ids=tokenizer(text, return_tensors="pt").input_ids)[0]
    request = {"task": "generated text", "inputs": {"text": text}, "options": {"max_new_tokens": 12}}
    result, opened = run_in_browser(packages, folder, tmp_path / "profile", **request)
    assert result["text"] == text + tokenizer.decode(want, skip_special_tokens=True)
    assert {"onnx/model.onnx", "onnx/model.onnx_data"} <= set(opened)


def test_a_picture_gets_the_labels_of_eager_pytorch(packages: Path, tmp_path: Path) -> None:
    folder = tmp_path / "vit"
    row = row_of("vit")
    model = built(row)
    export_one_graph(CLIENT, model, row.inputs(0), folder)
    size = model.config.image_size
    (folder / "preprocessor_config.json").write_text(json.dumps(preprocessor(size)))
    pixels = torch.randint(0, 256, (size, size, 3), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        scores = model(pixels.permute(2, 0, 1)[None] / 255 * 2 - 1).logits[0].softmax(-1)
    request = {
        "task": "labels of a picture",
        "inputs": {"data": pixels.flatten().tolist(), "width": size, "height": size},
    }
    result, _ = run_in_browser(packages, folder, tmp_path / "profile", **request)
    best = scores.topk(len(result["labels"]))
    assert [found["label"] for found in result["labels"]] == [model.config.id2label[int(i)] for i in best.indices]
    torch.testing.assert_close(torch.tensor([found["score"] for found in result["labels"]]), best.values)


def preprocessor(size: int) -> dict[str, object]:
    return {
        "image_processor_type": "ViTImageProcessor",
        "do_resize": True,
        "size": {"height": size, "width": size},
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": [0.5, 0.5, 0.5],
        "image_std": [0.5, 0.5, 0.5],
    }
