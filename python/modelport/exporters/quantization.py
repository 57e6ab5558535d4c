"""Weights in few bits, as OnnxConfig and the command line say it."""

from __future__ import annotations

import dataclasses
from typing import Any

from ..base.errors import problem

BITS = {"int4": 4, "int8": 8}


@dataclasses.dataclass(frozen=True)
class Quantization:
    """How weights of products and embeddings are stored for onnxruntime's kernels.

    `block_size` columns share a scale. Without `symmetric` each block has a zero point too. `accuracy_level` 4 lets the
    kernel round inputs to 8 bits, which is faster; with 0 it computes in floats. `method` "search" takes the scales
    with the least squared error, "range" those that the largest weight gives."""

    bits: int = 4
    block_size: int = 32
    symmetric: bool = True
    accuracy_level: int = 4
    method: str = "search"

    def __post_init__(self) -> None:
        size = self.block_size
        if self.bits not in BITS.values():
            raise problem("E0306", f"weights in {self.bits} bits are not written", *(f"dtype={n!r}" for n in BITS))
        if type(size) is not int or size < 16 or size & (size - 1):
            raise problem("E0306", f"a block of {size} columns is no power of two from 16 on", "block_size=32")
        if self.accuracy_level not in (0, 1, 2, 3, 4):
            raise problem("E0306", f"onnxruntime has no accuracy_level {self.accuracy_level}", "accuracy_level=4")
        if self.method not in ("search", "range"):
            raise problem("E0306", f"method={self.method!r} is no way to choose scales", "method='search' or 'range'")

    @classmethod
    def given(cls, asked: Any, dtype: Any = None) -> Quantization | None:
        """What a config has for it: one of these, a dict of fields, or a dtype such as "int4" alone."""
        if isinstance(asked, cls):
            return asked
        bits: dict[str, Any] = {"bits": BITS[dtype]} if isinstance(dtype, str) and dtype in BITS else {}
        if asked is None and not bits:
            return None
        known = {field.name for field in dataclasses.fields(cls)}
        unknown = sorted(set(asked or {}) - known)
        if unknown:
            what = f"quantization has no field {', '.join(unknown)}"
            raise problem("E0306", what, f"it has: {', '.join(sorted(known))}")
        return cls(**(bits | dict(asked or {})))
