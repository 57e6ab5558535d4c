"""Builds every row and runs it eagerly at its three sizes: `python -m zoo.check_eager [names]`."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import torch
import transformers
from torch.overrides import TorchFunctionMode

from . import ROWS, Row
from .row import Inputs

Call = tuple[str, int]


class Calls(TorchFunctionMode):
    """Writes down each call of torch and how many tensors it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Call] = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        given = sum(1 for _ in tensors([args, kwargs], set()))
        self.seen.append((getattr(func, "__name__", str(func)), given))
        return func(*args, **kwargs)


def tensors(value: Any, seen: set[int]) -> Iterator[torch.Tensor]:
    """Every tensor inside nested outputs; caches are plain objects, so attributes count too."""
    if isinstance(value, torch.Tensor):
        yield value
    elif id(value) in seen:
        return
    elif isinstance(value, Mapping):
        seen.add(id(value))
        for item in value.values():
            yield from tensors(item, seen)
    elif isinstance(value, (list, tuple)):
        seen.add(id(value))
        for item in value:
            yield from tensors(item, seen)
    elif type(value).__module__.startswith("transformers.") and hasattr(value, "__dict__"):
        seen.add(id(value))
        yield from tensors(vars(value), seen)


def emptiness(found: list[torch.Tensor]) -> str | None:
    """Why these outputs would prove nothing: not numbers, or the same for all of the batch."""
    floats = [t for t in found if t.is_floating_point() and t.numel()]
    if not floats:
        return "no floating-point output"
    if any(t.isnan().any() for t in floats):
        return "a NaN in the outputs"
    # Scores that a model masks on purpose are -inf or the lowest number of the type.
    first = next((t for t in floats if t.ndim > 1), floats[0]).clamp(-1e6, 1e6)
    if first.std(dim=0).max() < 1e-3 * first.abs().max() or first.abs().max() < 1e-3:
        return "the first output does not depend on the inputs"
    return None


def parting(calls: list[Call], others: list[Call]) -> str | None:
    """Where two runs take different ways through the model: no one graph serves both sizes."""
    for i, (call, other) in enumerate(zip(calls, others, strict=False)):
        if call != other:
            return f"call {i} is {other[0]} of {other[1]}, was {call[0]} of {call[1]}"
    if len(calls) != len(others):
        return f"{len(others)} calls, were {len(calls)}"
    return None


def run(model: torch.nn.Module, inputs: Inputs) -> tuple[list[torch.Tensor], list[Call]]:
    calls = Calls()
    with torch.no_grad(), calls:
        outputs = model(**inputs)
    return list(tensors(outputs, set())), calls.seen


def agree(found: list[torch.Tensor], others: list[torch.Tensor]) -> bool:
    return all(
        torch.allclose(a, b, rtol=1e-4, atol=1e-4, equal_nan=True)
        for a, b in zip(found, others, strict=True)
    )


def check(row: Row) -> tuple[str, str | None]:
    """The shapes of the first outputs at each size, and what is wrong."""
    model, inputs = row.build()
    shapes, ways = [], []
    for which in range(len(row.sizes)):
        found, calls = run(model, row.inputs(which) if which else inputs)
        ways.append(calls)
        complaint = emptiness(found)
        if complaint:
            return "", f"size {which}: {complaint}"
        shapes.append(" ".join(str(tuple(t.shape)).replace(" ", "") for t in found[:3]))
    if not agree(*(run(model, row.inputs(0))[0] for _ in range(2))):
        return "", "two runs give different values"
    if any(parting(ways[0], way) for way in ways):
        # Some models keep tables for the sizes that they have seen: look again.
        ways = [run(model, row.inputs(which))[1] for which in range(len(row.sizes))]
    for which, way in enumerate(ways):
        if complaint := parting(ways[0], way):
            return "", f"size {which}: {complaint}"
    return " | ".join(shapes), None


def main(words: list[str]) -> int:
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    warnings.simplefilter("ignore")
    rows = [row for row in ROWS if not words or row.name in words or row.kind in words]
    failed, start = [], time.process_time()
    for row in rows:
        begin = time.process_time()
        try:
            shapes, complaint = check(row)
        except Exception as error:  # a row that cannot run is a finding, not the end of the list
            shapes, complaint = "", f"{type(error).__name__}: {error}"
        spent = time.process_time() - begin
        print(f"{row.name:32} {spent:6.2f} s  {complaint or shapes}", flush=True)
        if complaint:
            failed.append(row.name)
    types = {row.make_config().model_type for row in rows}
    spent = time.process_time() - start
    print(f"{len(rows)} rows, {len(types)} model types, {len(failed)} failed, {spent:.1f} s")
    for name in failed:
        print("failed:", name)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
