"""Every row of the operator table in ExecuTorch's runtime, from the row's own samples."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from modelport.base import core

pytest.importorskip("executorch")

from executorch_parity import Parity

CELLS = [name for name in core.op_names() if core.executorch_cell(name)[0] and not core.executorch_cell(name)[1]]


@pytest.fixture(scope="module")
def parity() -> Iterator[Parity]:
    parity = Parity()
    yield parity
    parity.close()


@pytest.mark.parametrize("op", CELLS)
def test_the_runtime_agrees_with_pytorch_on_every_sample(parity: Parity, op: str) -> None:
    assert parity.check(op).wrong == []


def test_a_row_that_refuses_says_why() -> None:
    reasons = {name: core.executorch_cell(name)[1] for name in core.op_names() if core.executorch_cell(name)[1]}
    assert all(len(reason) > 15 for reason in reasons.values())
