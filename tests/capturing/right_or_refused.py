"""What a program may do at sizes and with data that it did not see: give the model's values, or refuse."""

from __future__ import annotations

from typing import Any

import torch

import modelport


def right_or_refused(model: Any, captured: Any, *inputs: torch.Tensor) -> bool:
    """Whether the program gave the model's values; it may refuse with E0304 instead."""
    try:
        got = captured.run(*inputs)
    except modelport.ExportError as error:
        assert error.code == "E0304"
        return False
    want = model(*inputs)
    assert got.shape == want.shape
    assert torch.allclose(got, want)
    return True
