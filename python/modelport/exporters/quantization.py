"""Weights in few bits, as OnnxConfig and the command line say it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from ..base.errors import problem

# Types of weights in few bits: how many, and the type of all else. Some have two names.
FEW_BITS = {"int4": (4, "fp32"), "q4": (4, "fp32"), "q4f16": (4, "fp16"), "int8": (8, "fp32"), "q8": (8, "fp32")}


FORMS = ("blocks", "dynamic", "static")


@dataclasses.dataclass(frozen=True)
class Quantization:
    """How weights of products and embeddings are stored for onnxruntime's kernels.

    `form` "blocks" is for models that generate, which read all weights for a token: only weights have few bits, and
    blocks of a row a scale. "dynamic" and "static" are for models that read many tokens at once, in 8 bits: products
    are of integers, rows of weights have a scale, inputs are rounded by the range of each call ("dynamic") or by
    `ranges` that were measured before ("static").
    `block_size` columns share a scale. Without `symmetric` each block has a zero point too. `accuracy_level` 4 lets the
    kernel round inputs to 8 bits, which is faster; with 0 it computes in floats. `method` "search" takes the scales
    with the least squared error, "range" those that the largest weight gives."""

    bits: int = 4
    block_size: int = 32
    symmetric: bool = True
    accuracy_level: int = 4
    method: str = "search"
    form: str = "blocks"
    ranges: tuple[tuple[float, float], ...] | None = None

    def __post_init__(self) -> None:
        size = self.block_size
        if self.bits not in (4, 8):
            raise problem("E0319", f"weights in {self.bits} bits are not written", "dtype='int4'", "dtype='int8'")
        if type(size) is not int or size < 16 or size & (size - 1):
            raise problem("E0319", f"a block of {size} columns is no power of two from 16 on", "block_size=32")
        if self.accuracy_level not in (0, 1, 2, 3, 4):
            raise problem("E0319", f"onnxruntime has no accuracy_level {self.accuracy_level}", "accuracy_level=4")
        # Two more that nobody asks for: to give ranges (calibration.py), and as the checkpoint has it.
        if self.form not in (*FORMS, "measured", "stored"):
            ways = (f"form={form!r}" for form in FORMS)
            raise problem("E0319", f"form={self.form!r} is no form of weights in few bits", *ways)
        if self.form in ("dynamic", "static") and self.bits != 8:
            what = f"form={self.form!r} is of 8 bits, and {self.bits} are asked for"
            raise problem("E0319", what, "dtype='int8'", "form='blocks'")
        if self.method not in ("search", "range"):
            raise problem("E0319", f"method={self.method!r} is no way to choose scales", "method='search' or 'range'")

    def settings(self, packed: Mapping[str, Any]) -> dict[str, Any]:
        """As a lowering takes it. `packed` are the weights that the checkpoint has as codes, which stay as they are."""
        own = {name: (weight.format.bits, weight.block, not weight.format.symmetric) for name, weight in packed.items()}
        return dataclasses.asdict(self) | {"stored": own, "only_stored": self.form == "stored"}

    @classmethod
    def given(cls, asked: Any, dtype: Any = None) -> Quantization | None:
        """What a config has for it: one of these, a dict of fields, or a dtype such as "int4" alone."""
        if isinstance(asked, cls):
            return asked
        bits: dict[str, Any] = {"bits": FEW_BITS[dtype][0]} if isinstance(dtype, str) and dtype in FEW_BITS else {}
        if asked is None and not bits:
            return None
        known = {field.name for field in dataclasses.fields(cls)}
        unknown = sorted(set(asked or {}) - known - {"ranges"})
        if unknown:
            what = f"quantization has no field {', '.join(unknown)}"
            raise problem("E0319", what, f"it has: {', '.join(sorted(known))}")
        return cls(**(bits | dict(asked or {})))
