"""Every row of the operator table in onnxruntime, from the row's own samples."""

from __future__ import annotations

import onnx_parity
import pytest

from modelport.base import core
from modelport.generation.custom_attention import define_operators

# Most rows of our own are no operators of torch: tests/exporters/onnxruntime_operators_test.py shows what they are for.
OURS = "modelport."
KNOWN_TO_TORCH = ("modelport.gated_delta_rule",)
CELLS = [
    name
    for name in core.op_names()
    if core.onnx_cell(name)[0] and not core.onnx_cell(name)[1] and (not name.startswith(OURS) or name in KNOWN_TO_TORCH)
]
define_operators()
PARTS = 8


@pytest.mark.parametrize("op", CELLS)
def test_onnxruntime_agrees_with_pytorch_on_every_sample(op: str) -> None:
    assert list(onnx_parity.mismatches(op)) == []


@pytest.mark.parametrize("part", range(PARTS))
def test_older_opsets_agree_as_well(part: int) -> None:
    """Many rows in one test: most of them do not depend on the opset."""
    wrong = [line for op in CELLS[part::PARTS] for line in onnx_parity.mismatches_of_older(op, (17, 18))]
    assert wrong == []


def test_every_row_has_a_rule_or_says_why_not() -> None:
    assert [name for name in core.op_names() if not core.onnx_cell(name)[0]] == []
    reasons = {name: core.onnx_cell(name)[1] for name in core.op_names() if core.onnx_cell(name)[1]}
    assert all(len(reason) > 15 for reason in reasons.values())
