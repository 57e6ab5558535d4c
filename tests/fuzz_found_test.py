"""Differences that `make fuzz-models` found, each reduced to the program that shows it and grouped by cause."""

from __future__ import annotations

import pytest
import torch

import modelport

# --- shapes that are learned ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", [8, 9, 64])
def test_an_operator_whose_size_is_rounded_down_is_not_taken_for_one_of_constant_size(at: int) -> None:
    library = torch.library.Library("modelport_every_fourth", "FRAGMENT")
    library.define(f"at{at}(Tensor x) -> Tensor")
    library.impl(f"at{at}", lambda x: x[: len(x) // 4].clone(), "CPU")
    library.impl(f"at{at}", lambda x: x.new_empty(len(x) // 4), "Meta")
    operator = getattr(torch.ops.modelport_every_fourth, f"at{at}")
    with pytest.raises(modelport.ExportError, match="E0201"):
        modelport.capture(lambda x: operator(x) + 1, (torch.ones(at),), dynamic=True)
