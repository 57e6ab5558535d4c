"""Code that no library brought is compared with its graph by value, at the example and at another size.

What a model asks past torch reaches no recorder: whether a size is an `int`, what is kept under its digits, how often a
function was called, whether torch exports. In the code of torch and transformers the zoo of the tests would show it; a
model's own code is seen for the first time."""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import torch

from ..base.errors import ExportError, problem
from ..base.structure import Flat
from ..models.state import submodules
from ..patches.function_caches import forgotten
from ..symbolic.shown_symbols import Asked, is_own
from ..weights import lazy_weights
from .captured import Captured
from .comparison import is_wrong
from .trial_inputs import Sizes, resized, shuffled

_NEAR = 4  # times the example: a model at sizes far above it would take long
_SMALL = 256  # a size from which on one more has to do
_FAR = 16
_USUAL = (16, 24, 32, 48, 56, 64, 96, 100, 112, 128, 196, 224, 256, 384, 512, 1024)  # sizes that tables are made for
_SCALES = (-1.0, 4.0)  # of real numbers in the inputs
_SECONDS = 2.0  # for all comparisons; the one at the example is always made


def has_own_code(model: Any) -> bool:
    """Whether there is code that only this model has; not where its weights would have to be read to run it."""
    if lazy_weights.of(model) is not None:
        return False
    return any(is_own(getattr(holder, "__module__", None) or "") for holder in _classes(model) or {model})


def own_scopes(model: Any) -> list[dict[str, Any]]:
    """The globals of the code that only this model has, and of what lies in one package with it."""
    if not isinstance(model, torch.nn.Module):
        scope = getattr(model, "__globals__", None)
        return [scope] if scope is not None and is_own(scope.get("__name__", "")) else []
    roots = {cls.__module__.partition(".")[0] for cls in _classes(model) if is_own(cls.__module__)}
    loaded = [module for name, module in list(sys.modules.items()) if name.partition(".")[0] in roots]
    return [vars(module) for module in loaded if isinstance(module, ModuleType)]


def wrong_at(model: Any, captured: Captured, asked: Asked) -> Sizes | None:
    """Sizes at which the graph gives other values than the model; none, as far as that was tried."""
    end = time.monotonic() + _SECONDS
    many = _many_trials(captured) if asked.shown else ()
    with forgotten(_classes(model)):
        for sizes, inputs in itertools.chain(_trials(captured, asked.strides), many):
            if is_wrong(model, captured, inputs):
                return sizes
            if time.monotonic() > end:
                break
    return None


def _classes(model: Any) -> set[type]:
    return {type(child) for _, child in submodules(model if isinstance(model, torch.nn.Module) else None)}


def wrong_values(sizes: Sizes) -> ExportError:
    if not sizes:
        return problem(
            "E0401",
            "the graph does not give the model's values: its code does something else when it is captured than when it "
            "runs, or in one call than in the next",
            "look for type() of a size, torch.compiler.is_exporting(), clocks, dice and counters outside the model",
            "where it asks for the strides of an input: make it contiguous first",
        )
    at = ", ".join(f"{name} = {size}" for name, size in sizes.items())
    return problem(
        "E0401",
        f"the graph does not give the model's values at {at}: its code asks for a size in a way that no tensor shows",
        "look for type() of a size, and for numbers that are read from texts",
        "export it for the sizes of the example alone: dynamic=False",
    )


def _trials(captured: Captured, other_strides: bool) -> Iterator[tuple[Sizes, Flat]]:
    yield {}, captured.inputs
    yield {}, shuffled(captured.inputs, 0)
    if other_strides:
        yield {}, _otherwise_in_memory(captured.inputs)
    for sizes in _larger_sizes(captured.program):
        yield sizes, resized(captured, sizes)


def _many_trials(captured: Captured) -> Iterator[tuple[Sizes, Flat]]:
    for scale in _SCALES:
        yield {}, _scaled(captured.inputs, scale)
    dims = _free_dims(captured.program)
    hints = {dim["name"]: dim["hint"] for dim in dims}
    for dim in dims:
        largest = _FAR * dim["hint"] + _FAR
        near = range(max(dim["lo"], 1), 2 * dim["hint"] + 3)
        for size in [*near, *(size for size in _USUAL if near.stop <= size <= largest)]:
            sizes = {dim["name"]: size}
            if captured.program.admits(hints | sizes):
                yield sizes, resized(captured, sizes)


def _otherwise_in_memory(inputs: Flat) -> Flat:
    """The same inputs with columns where rows lay."""
    rows = (isinstance(leaf, torch.Tensor) and leaf.dim() > 1 for leaf in inputs.leaves)
    leaves = [leaf.mT.contiguous().mT if turned else leaf for leaf, turned in zip(inputs.leaves, rows, strict=True)]
    return Flat(inputs.names, leaves, inputs.spec)


def _scaled(inputs: Flat, scale: float) -> Flat:
    real = (isinstance(leaf, torch.Tensor) and leaf.is_floating_point() for leaf in inputs.leaves)
    leaves = [leaf * scale if scaled else leaf for leaf, scaled in zip(inputs.leaves, real, strict=True)]
    return Flat(inputs.names, leaves, inputs.spec)


def _larger_sizes(program: Any) -> list[Sizes]:
    """One size for all dimensions that are free, or one for each where they do not go together."""
    dims = _free_dims(program)
    hints = {dim["name"]: dim["hint"] for dim in dims}
    larger = {dim["name"]: _larger(dim) for dim in dims if _larger(dim) != dim["hint"]}
    if not larger or program.admits(hints | larger):
        return [larger] if larger else []
    return [{name: size} for name, size in larger.items() if program.admits(hints | {name: size})]


def _larger(dim: dict[str, Any]) -> int:
    """With one digit more, where that is near."""
    size: int = 10 ** len(str(dim["hint"]))
    size = size if size <= min(_NEAR * dim["hint"], _SMALL) else dim["hint"] + 1
    return size if dim["hi"] is None else max(dim["hint"], min(size, dim["hi"]))


def _free_dims(program: Any) -> list[dict[str, Any]]:
    return [dim for dim in program.dims() if not dim["from_data"]]
