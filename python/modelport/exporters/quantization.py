"""Weights in few bits, as OnnxConfig and the command line say it."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any

from ..base.errors import problem
from ..base.printable import listed

# Types of weights in few bits: how many, and the type of all else. Some have two names.
FEW_BITS = {"int4": (4, "fp32"), "q4": (4, "fp32"), "q4f16": (4, "fp16"), "int8": (8, "fp32"), "q8": (8, "fp32")}


FORMS = ("blocks", "dynamic", "static")
METHODS = ("search", "range", "gptq")
# What single layers may have: bits, or 0 for what stays in floats.
LAYER_BITS = {"int4": 4, "q4": 4, "int8": 8, "q8": 8, "float": 0}


@dataclasses.dataclass(frozen=True)
class Quantization:
    """How weights of products and embeddings are stored for onnxruntime's kernels.

    `form` "blocks" is for models that generate, which read all weights for a token: only weights have few bits, and
    blocks of a row a scale. "dynamic" and "static" are for models that read many tokens at once, in 8 bits: products
    are of integers, rows of weights have a scale, inputs are rounded by the range of each call ("dynamic") or by
    `ranges` that were measured before ("static").
    `block_size` columns share a scale. Without `symmetric` each block has a zero point too. `accuracy_level` 4 lets the
    kernel round inputs to 8 bits, which is faster; with 0 it computes in floats. `method` "search" takes the scales
    with the least squared error, "range" those that the largest weight gives; "gptq" rounds a weight's columns one by
    one, so that later ones make up for the errors of earlier ones on inputs as those of `calibration`.
    `layers` says otherwise for some: patterns of modules, and "int4", "int8" or "float"; the last that fits counts."""

    bits: int = 4
    block_size: int = 32
    symmetric: bool = True
    accuracy_level: int = 4
    method: str = "search"
    form: str = "blocks"
    ranges: tuple[tuple[float, float], ...] | None = None
    layers: Mapping[str, str] = dataclasses.field(default_factory=dict)

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
        if self.method not in METHODS:
            ways = (f"method={method!r}" for method in METHODS)
            raise problem("E0319", f"method={self.method!r} is no way to choose scales", *ways)
        for pattern, kind in self.layers.items():
            self._check_layer(pattern, kind)

    def _check_layer(self, pattern: str, kind: str) -> None:
        allowed = {name: bits for name, bits in LAYER_BITS.items() if self.form == "blocks" or bits in (0, 8)}
        if kind not in allowed:
            what = f"layers={{{pattern!r}: {kind!r}}} is no type for single layers"
            raise problem("E0319", what, f"choose from {', '.join(allowed)}")
        if self.form == "blocks" and allowed[kind] == 8 and self.accuracy_level != 4:
            what = f"onnxruntime has no quick kernel for {pattern} in 8 bits with accuracy_level={self.accuracy_level}"
            raise problem("E0319", what, "accuracy_level=4")

    def settings(self, packed: Mapping[str, Any], program: Any) -> dict[str, Any]:
        """As a lowering of the program takes it. `packed` are the weights that the checkpoint has as codes, which stay
        as they are."""
        own = {name: (weight.format.bits, weight.block, not weight.format.symmetric) for name, weight in packed.items()}
        names = names_of_weights(program) if self.layers else {}
        layers = {weight: bits for weight, called in names.items() if (bits := self._bits_of(called)) is not None}
        return dataclasses.asdict(self) | {"stored": own, "only_stored": self.form == "stored", "layers": layers}

    def _bits_of(self, names: Iterable[str]) -> int | None:
        fitting = [kind for pattern, kind in self.layers.items() if any(_fits(name, pattern) for name in names)]
        return LAYER_BITS[fitting[-1]] if fitting else None

    def of_part(self, weights: Iterable[str]) -> Quantization:
        """For a graph that is no part of the model as its user knows it: nothing was measured for it, and patterns may
        mean other parts."""
        names = list(weights)
        layers = {pattern: kind for pattern, kind in self.layers.items() if any(_fits(name, pattern) for name in names)}
        return dataclasses.replace(self, layers=layers, method="search" if self.method == "gptq" else self.method)

    def refuse_unmatched(self, weights: Iterable[str]) -> None:
        """Patterns that fit none of these matrices are taken for mistakes."""
        names = list(weights)
        for pattern in self.layers:
            if not any(_fits(name, pattern) for name in names):
                modules = sorted({_module(name) for name in names})
                close = difflib.get_close_matches(pattern, modules, n=4, cutoff=0.5) or modules
                what = f"layers: no module with a matrix of weights is called {pattern}; there are {listed(close, 4)}"
                raise problem("E0319", what, "* stands for any letters: model.layers.0.*")

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


def names_of_weights(program: Any) -> dict[str, list[str]]:
    """All that a weight is called: a head that is the embedding as well has two names, and is one tensor."""
    tied = program.tied_names()
    return {name: [name, *tied.get(name, ())] for name in program.weights()}


def _module(weight: str) -> str:
    return weight.removesuffix(".weight")


def _fits(weight: str, pattern: str) -> bool:
    return fnmatchcase(_module(weight), pattern) or fnmatchcase(weight, pattern)
