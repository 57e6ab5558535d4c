"""`modelport run` of ExecuTorch programs: what they say is what the model says, whatever it reads."""

from __future__ import annotations

import json
import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers as t
from executorch_tasks_test import detr
from PIL import Image
from tiny_generators import VOCABULARY, llava, made, save_tokenizer, t5, whisper
from tiny_models import tiny

from modelport.cli import main
from modelport.running.media import read_sound

pytest.importorskip("executorch")


def call(*args: object) -> int:
    return main([str(arg) for arg in args])


def exported(model: Any, folder: Path, *flags: str, kind: str = "executorch") -> Path:
    """Beside what reads its inputs, which lies in `folder` already."""
    model.save_pretrained(folder)
    out = folder.parent / f"{folder.name}-{kind}"
    assert call("export", kind, folder, out, "--no-check", "--quiet", *flags) == 0
    return out


def words(ids: torch.Tensor) -> str:
    """As the tokenizer has them, without the special ones."""
    return " ".join(f"w{i}" for i in ids.tolist() if 5 <= i < VOCABULARY - 1)


@pytest.fixture(scope="module")
def picture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pictures") / "cat.png"
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (40, 30, 3), dtype=np.uint8)).save(path)
    return path


def test_t5_answers_a_text(tmp_path: Path, capsys: Any) -> None:
    model = made(t5)
    save_tokenizer(tmp_path / "t5")
    out = exported(model, tmp_path / "t5", "--max_seq_len", "32")
    capsys.readouterr()
    assert call("run", out, "w7 w8 w9", "--max-new-tokens", 8, "-q") == 0
    want = model.generate(torch.tensor([[7, 8, 9]]), max_new_tokens=8)[0]
    assert capsys.readouterr().out == words(want) + "\n" != "\n"


def test_whisper_writes_down_a_sound(tmp_path: Path, capsys: Any) -> None:
    model, folder = made(whisper), tmp_path / "whisper"
    extractor = t.WhisperFeatureExtractor(feature_size=8, sampling_rate=9600, hop_length=160, chunk_length=1, n_fft=400)
    t.WhisperProcessor(extractor, save_tokenizer(folder)).save_pretrained(folder)
    out = exported(model, folder, "--max_seq_len", "32")
    with wave.open(str(tmp_path / "a.wav"), "wb") as file:
        file.setparams((1, 2, 9600, 0, "NONE", ""))
        file.writeframes((16000 * np.sin(np.arange(4800) / 10)).astype("<i2").tobytes())
    capsys.readouterr()
    assert call("run", out, "--audio", tmp_path / "a.wav", "--max-new-tokens", 8, "-q") == 0
    samples, rate = read_sound(str(tmp_path / "a.wav"))
    features = extractor(samples, sampling_rate=rate, return_tensors="pt")
    assert capsys.readouterr().out == words(model.generate(**features, max_new_tokens=8)[0]) + "\n" != "\n"


def test_a_model_that_sees_speaks_of_a_picture(picture: Path, tmp_path: Path, capsys: Any) -> None:
    model, folder = made(llava), tmp_path / "llava"
    sizes = {"size": {"shortest_edge": 16}, "crop_size": {"height": 16, "width": 16}}
    processor = t.LlavaProcessor(
        image_processor=t.CLIPImageProcessorPil(**sizes), tokenizer=save_tokenizer(folder, further="<image>"),
        patch_size=8, vision_feature_select_strategy="default", num_additional_image_tokens=1,
    )  # fmt: skip
    processor.save_pretrained(folder)
    out = exported(model, folder, "--max_seq_len", "32")
    capsys.readouterr()
    assert call("run", out, "w7 w8", "--image", picture, "--max-new-tokens", 8, "-q") == 0
    inputs = processor(text="<image> w7 w8", images=[Image.open(picture)], return_tensors="pt")
    want = model.generate(**inputs, max_new_tokens=8)[0, inputs["input_ids"].shape[1] :]
    assert capsys.readouterr().out == words(want) + "\n" != "\n"


@pytest.mark.parametrize("kind", ["executorch", "onnx"])
def test_bert_finds_the_words_for_a_mask(kind: str, tmp_path: Path, capsys: Any) -> None:
    model, folder = made(lambda: tiny("bert for masked words", max_position_embeddings=64)), tmp_path / "bert"
    tokenizer = save_tokenizer(folder)
    tokenizer.mask_token = "<user>"
    tokenizer.save_pretrained(folder)
    out = exported(model, folder, kind=kind)
    capsys.readouterr()
    assert call("run", out, "w7 <user> w9", "--json") == 0
    with torch.no_grad():
        best = model(torch.tensor([[7, 4, 9]])).logits[0, 1].softmax(0).topk(5)
    told = json.loads(capsys.readouterr().out)["answers"]
    assert [row["text"] for row in told] == [tokenizer.decode([i]) for i in best.indices.tolist()]
    np.testing.assert_allclose([row["score"] for row in told], best.values, rtol=1e-3)
    assert call("run", out, "w7 w9") == 2
    assert "the prompt has no <user>" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["executorch", "onnx"])
def test_vit_tells_the_labels_of_a_picture(kind: str, picture: Path, tmp_path: Path, capsys: Any) -> None:
    model, folder = made(lambda: tiny("vit")), tmp_path / "vit"
    model.config.id2label = {0: "cat", 1: "dog"}
    processor = t.ViTImageProcessorPil(size={"height": 32, "width": 32})
    processor.save_pretrained(folder)
    out = exported(model, folder, kind=kind)
    capsys.readouterr()
    assert call("run", out, "--image", picture) == 0
    inputs = processor(images=[Image.open(picture)], return_tensors="pt")
    with torch.no_grad():
        scores = model(**inputs).logits[0].softmax(0).tolist()
    ranked = sorted(zip(scores, ("cat", "dog"), strict=True), reverse=True)
    assert capsys.readouterr().out == "".join(f"{score:.3f}  {label}\n" for score, label in ranked)
    assert call("run", out) == 2
    assert "--image FILE" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["executorch", "onnx"])
def test_detr_tells_things_and_their_places(kind: str, picture: Path, tmp_path: Path, capsys: Any) -> None:
    model, folder = made(detr), tmp_path / "detr"
    processor = t.DetrImageProcessorPil(size={"height": 48, "width": 48})
    processor.save_pretrained(folder)
    out = exported(model, folder, *(["--image_size", "48"] if kind == "executorch" else []), kind=kind)
    capsys.readouterr()
    assert call("run", out, "--image", picture, "--json") == 0
    with torch.no_grad():
        results = model(**processor(images=[Image.open(picture)], return_tensors="pt"))
    want = processor.post_process_object_detection(results, threshold=0.0, target_sizes=[(40, 30)])[0]
    told, best = json.loads(capsys.readouterr().out)["answers"], int(want["scores"].argmax())
    assert told[0]["text"] == ("cat", "dog")[want["labels"][best]]
    np.testing.assert_allclose(told[0]["box"], want["boxes"][best], atol=0.05)
    likely = max(1, int((want["scores"] >= 0.5).sum()))
    assert len(told) == likely
