"""Linear attention for any number of tokens: onnxruntime's own kernel, or a loop of standard operators."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import onnx
import pytest
import torch
from executorch_decoders import CHANNELWISE, LINEAR, tiny

import modelport
from modelport import OnnxConfig, OnnxExporter


@pytest.fixture(scope="module")
def model() -> Any:
    return tiny("qwen3_next", **LINEAR | {"max_position_embeddings": 128})


def exported(model: Any, operators: str) -> Any:
    ids = torch.randint(3, 30, (2, 5))
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    return OnnxExporter().export_for_generation(model, inputs, OnnxConfig(operators=operators))


@pytest.fixture(scope="module", params=["onnxruntime", "standard"])
def folder(model: Any, request: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp(request.param)
    exported(model, request.param).save(target)
    return target


def operators_of(folder: Path) -> Counter[str]:
    (file,) = folder.rglob("*.onnx")
    return Counter(node.op_type for node in onnx.load(file, load_external_data=False).graph.node)


def test_every_layer_with_linear_attention_is_one_operator(folder: Path) -> None:
    operators = operators_of(folder)
    wanted, other = ("LinearAttention", "Scan") if "onnxruntime" in folder.name else ("Scan", "LinearAttention")
    assert operators[wanted] == 3
    assert not operators.keys() & {other, "Loop", "Log"}


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


@pytest.mark.parametrize("operators", ["onnxruntime", "standard"])
@pytest.mark.parametrize(("kind", "sizes"), [("qwen3_next", LINEAR), ("kimi_linear", CHANNELWISE)])
def test_a_plain_export_serves_texts_of_any_number_of_chunks(kind: str, sizes: Any, operators: str) -> None:
    """The model computes in chunks of 64 tokens, and its example is one of them. With large weights its norms blow up
    what chunks and single tokens round differently."""
    model = tiny(kind, **sizes | {"max_position_embeddings": 128, "initializer_range": 0.1})
    assert_same_logits(model, exported_plain(model, operators))


def test_a_checkpoint_folder_is_exported_the_same_way(tmp_path: Path) -> None:
    model = tiny("kimi_linear", **CHANNELWISE | {"max_position_embeddings": 128, "initializer_range": 0.1})
    model.save_pretrained(tmp_path)
    assert_same_logits(model, exported_plain(tmp_path, "standard"))


def exported_plain(model: Any, operators: str) -> Any:
    config = OnnxConfig(dynamic=True, operators=operators)
    return OnnxExporter().export(model, {"input_ids": torch.randint(3, 30, (2, 5))}, config)


def assert_same_logits(model: Any, program: Any) -> None:
    for length in (1, 64, 65, 128):
        ids = torch.randint(3, 30, (3, length), generator=torch.Generator().manual_seed(length))
        with torch.no_grad():
            wanted = model(ids).logits
        torch.testing.assert_close(program(input_ids=ids)[0], wanted, atol=1e-4, rtol=1e-4)
