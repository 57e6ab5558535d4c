"""`modelport export executorch` of models that are called once, with the flags of optimum-executorch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers as t
from tiny_models import tiny

import modelport
from modelport.artifacts.pte import read_program
from modelport.cli import main

pytest.importorskip("executorch")

LAYERS = {"layers": 1, "attention_heads": 4, "ffn_dim": 48}


def detr() -> Any:
    backbone = t.ResNetConfig(
        embedding_size=16, hidden_sizes=[16, 32], depths=[1, 1], layer_type="basic", out_features=["stage2"]
    )
    sizes = {f"{side}_{name}": n for side in ("encoder", "decoder") for name, n in LAYERS.items()}
    labels = {0: "cat", 1: "dog"}
    return t.DetrForObjectDetection(
        t.DetrConfig(backbone_config=backbone, d_model=32, num_queries=5, id2label=labels, **sizes)
    )


TASKS: dict[str, tuple[Any, list[str], dict[str, Any]]] = {
    "fill-mask": (
        lambda: tiny("bert for masked words", max_position_embeddings=64),
        ["--max_seq_len", "24"],
        {"input_ids": [1, 24], "attention_mask": [1, 24]},
    ),
    "image-classification": (lambda: tiny("vit"), ["--dtype", "float16"], {"pixel_values": [1, 3, 32, 32]}),
    "object-detection": (
        detr,
        ["--image_size", "48"],
        {"pixel_values": [1, 3, 48, 48], "pixel_mask": [1, 48, 48]},
    ),
}


@pytest.mark.parametrize("task", TASKS)
def test_models_that_are_called_once_are_exported_by_their_task(task: str, tmp_path: Path, capsys: Any) -> None:
    maker, flags, sizes = TASKS[task]
    torch.manual_seed(0)
    maker().eval().save_pretrained(tmp_path / "model")
    capsys.readouterr()
    command = ["export", "executorch", "-m", tmp_path / "model", "-o", tmp_path / "out", "--task", task, *flags]
    assert main([str(arg) for arg in [*command, "--dims", "batch=1:1", "--json"]]) == 0
    assert json.loads(capsys.readouterr().out)["check"]["ok"]
    program = read_program(tmp_path / "out" / "model.pte")
    inputs = program["methods"]["forward"]["inputs"]
    loaded = modelport.load(tmp_path / "out")
    assert {n: row["sizes"] for n, row in zip(loaded.input_names, inputs, strict=True) if n in sizes} == sizes
    if task == "object-detection":
        told = program["constant_methods"]
        assert (told["get_label_ids"], told["get_label_names"], told["image_size"]) == ([0, 1], ["cat", "dog"], [48])
        with pytest.raises(modelport.ExportError, match="height is 64"):
            loaded(pixel_values=torch.zeros(1, 3, 64, 64), pixel_mask=torch.ones(1, 64, 64, dtype=torch.int64))


def test_flags_of_models_that_generate_are_refused_for_others(tmp_path: Path, capsys: Any) -> None:
    tiny("bert for masked words").save_pretrained(tmp_path / "model")
    assert main(["export", "executorch", str(tmp_path / "model"), str(tmp_path / "out"), "--use_custom_sdpa"]) == 2
    assert "--use_custom_sdpa is for models that generate" in capsys.readouterr().err
