"""Floating types by the names that users know them by."""

from __future__ import annotations

from typing import Any

import torch

from .errors import problem

FLOATS = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
# Between these a writer converts weights on their way to a file.
CONVERTIBLE = frozenset({torch.float64, torch.float32, torch.float16, torch.bfloat16})


def float_dtype(asked: Any) -> torch.dtype | None:
    """The type that is asked for: "fp16", "float16" or torch.float16; None is none."""
    if asked is None:
        return None
    found = FLOATS.get(asked, getattr(torch, asked, None)) if isinstance(asked, str) else asked
    if found not in FLOATS.values():
        raise problem("E0306", f"dtype={asked!r} is no type that weights are written in", "fp32, fp16 or bf16")
    return found


def short_name(dtype: torch.dtype) -> str:
    return next(name for name, known in FLOATS.items() if known == dtype)
