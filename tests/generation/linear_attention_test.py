"""Linear attention by onnxruntime's own operator: one kernel that reads a prompt at once, and its state after it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import onnx
import pytest
import torch
from executorch_decoders import LINEAR, tiny

import modelport
from modelport import OnnxConfig, OnnxExporter


@pytest.fixture(scope="module")
def model() -> Any:
    return tiny("qwen3_next", **LINEAR | {"max_position_embeddings": 128})


def exported(model: Any, operators: str) -> Any:
    ids = torch.randint(3, 30, (2, 5))
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    return OnnxExporter().export_for_generation(model, inputs, OnnxConfig(operators=operators))


@pytest.fixture(scope="module")
def folder(model: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("linear")
    exported(model, "onnxruntime").save(target)
    return target


def operators_of(folder: Path) -> Counter[str]:
    (file,) = folder.rglob("*.onnx")
    return Counter(node.op_type for node in onnx.load(file, load_external_data=False).graph.node)


def test_every_layer_with_linear_attention_is_one_operator(folder: Path) -> None:
    operators = operators_of(folder)
    assert operators["LinearAttention"] == 3
    assert not operators.keys() & {"Scan", "Loop", "Log"}


def test_standard_operators_stay_standard(model: Any, tmp_path: Path) -> None:
    exported(model, "standard").save(tmp_path)
    assert "LinearAttention" not in operators_of(tmp_path)


@pytest.mark.parametrize("length", [1, 3, 7, 90])
def test_it_says_what_pytorch_says(model: Any, folder: Path, length: int) -> None:
    ids = torch.randint(3, 30, (1, length), generator=torch.Generator().manual_seed(length))
    settings = {"max_new_tokens": 12, "min_new_tokens": 12, "do_sample": False, "pad_token_id": 0}
    assert modelport.load(folder).generate(ids, **settings).tolist() == model.generate(ids, **settings).tolist()


def test_a_row_that_is_padded_says_what_it_says_alone(model: Any, folder: Path) -> None:
    ids = torch.randint(3, 30, (2, 6), generator=torch.Generator().manual_seed(0))
    mask = torch.ones_like(ids)
    ids[1, :2], mask[1, :2] = 0, 0
    settings = {"attention_mask": mask, "max_new_tokens": 8, "min_new_tokens": 8, "do_sample": False, "pad_token_id": 0}
    assert modelport.load(folder).generate(ids, **settings).tolist() == model.generate(ids, **settings).tolist()
