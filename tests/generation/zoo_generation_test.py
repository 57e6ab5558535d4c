"""Every generative class of the zoo: exported, loaded, and its greedy tokens compared with those of PyTorch."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from expected_generation_failures import EXPECTED_FAILURES
from transformers.cache_utils import Cache
from zoo import ROWS, Row

import modelport
from modelport import OnnxConfig, OnnxExporter
from modelport.generation.prompts import for_generate

TOKENS = 32
_BATCHED = ("input_ids", "input_features", "input_values", "pixel_values")


def _generates(row: Row) -> bool:
    """Rows with a cache show the same class again, at another call."""
    cls = getattr(transformers, row.model_class)
    return cls.can_generate() and not any(isinstance(value, Cache) for value in row.inputs(0).values())


def first_rows() -> list[Row]:
    """One row for each generative class."""
    found: dict[str, Row] = {}
    for row in ROWS:
        if row.model_class not in found and _generates(row):
            found[row.model_class] = row
    return list(found.values())


def prompt(model: Any, inputs: dict[str, Any], batch: int) -> dict[str, Any]:
    """The first rows of the inputs; a decoder of text gets one that is padded on the left."""
    given = for_generate(inputs)
    rows = next(value.shape[0] for name, value in given.items() if name in _BATCHED)
    if not modelport.is_multimodal(model):
        is_batched = {n: isinstance(v, torch.Tensor) and v.dim() and v.shape[0] == rows for n, v in given.items()}
        given = {name: value[:batch] if is_batched[name] else value for name, value in given.items()}
    if "input_ids" in given and not model.config.is_encoder_decoder and not modelport.is_multimodal(model):
        given["attention_mask"] = torch.ones_like(given["input_ids"])
        if batch > 1:
            given["attention_mask"][0, :2] = 0
    return given


@pytest.mark.parametrize("row", first_rows(), ids=lambda row: f"{row.model_class}")
def test_the_exported_model_generates_the_tokens_of_eager(row: Row, tmp_path: Path, request: Any) -> None:
    if row.model_class in EXPECTED_FAILURES:
        request.node.add_marker(pytest.mark.xfail(reason=EXPECTED_FAILURES[row.model_class], strict=True))
    model, inputs = row.build()
    OnnxExporter().export_for_generation(model, prompt(model, inputs, 2), OnnxConfig()).save(tmp_path)
    loaded = modelport.load(tmp_path)
    settings = {"max_new_tokens": TOKENS, "min_new_tokens": TOKENS, "do_sample": False}
    for batch in (1, 2):
        given = prompt(model, inputs, batch)
        want = model.generate(**copy.deepcopy(given), **settings)
        got = loaded.generate(**copy.deepcopy(given), **settings)
        assert got.tolist() == want.tolist()


def test_all_generative_classes_of_the_zoo_generate() -> None:
    classes = {row.model_class for row in first_rows()}
    assert set(EXPECTED_FAILURES) <= classes
    assert len(EXPECTED_FAILURES) <= 0  # of 122 classes; only ever lowered
