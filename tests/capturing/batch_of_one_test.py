"""An example of one row, as tokenizers and processors give it: the batch is dynamic all the same."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tiny_models import tiny

import modelport


def _sizes(captured: Any) -> dict[str, list[str]]:
    return {name: list(sizes) for name, _, sizes in captured.program.inputs()}


def test_a_model_that_was_shown_one_row_computes_several() -> None:
    model = tiny("bert")
    one = {"input_ids": torch.randint(1, 30, (1, 7)), "attention_mask": torch.ones(1, 7, dtype=torch.int64)}
    captured = modelport.capture(model, one, dynamic=True)
    assert _sizes(captured)["input_ids"] == ["batch", "seq"]
    for rows in (1, 3):
        ids = torch.randint(1, 30, (rows, 5))
        assert captured.check(model, {"input_ids": ids, "attention_mask": torch.ones_like(ids)})


def test_a_model_that_takes_one_row_only_is_captured_with_one() -> None:
    def one_row(x: torch.Tensor) -> torch.Tensor:
        if x.shape[0] != 1:
            raise ValueError("one row at a time")
        return x * 2

    captured = modelport.capture(one_row, {"x": torch.rand(1, 4)}, dynamic=True)
    assert _sizes(captured)["x"][0] == "1"


def test_a_branch_for_one_row_keeps_the_example_valid() -> None:
    def branches(x: torch.Tensor) -> torch.Tensor:
        return x + 1 if x.shape[0] == 1 else x * 3

    one = torch.rand(1, 4)
    captured = modelport.capture(branches, {"x": one}, dynamic=True)
    assert torch.equal(captured.run(x=one), one + 1)
    with pytest.raises(modelport.ExportError, match="E0304"):
        captured.run(x=torch.rand(2, 4))


def test_a_row_that_broadcasts_stays_one_beside_inputs_of_many() -> None:
    captured = modelport.capture(lambda x, y: x + y, {"x": torch.rand(1, 4), "y": torch.rand(3, 4)}, dynamic=True)
    assert _sizes(captured)["x"][0] == "1"


def test_the_batch_stays_one_where_that_is_asked_for() -> None:
    captured = modelport.capture(lambda x: x * 2, {"x": torch.rand(1, 4)}, dynamic=True, grow_batch=False)
    assert _sizes(captured)["x"][0] == "1"
