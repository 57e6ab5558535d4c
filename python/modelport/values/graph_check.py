"""Compares a captured graph with its model, value by value, and names the first module and node where they part."""

from __future__ import annotations

import copy
import dataclasses
import re
from collections.abc import Mapping
from typing import Any, Protocol

import torch

from ..base.errors import ExportError, problem
from ..base.item_lists import as_in_graph
from ..base.structure import flatten
from .eager_values import ModuleCall, Pool, is_beneath, module_calls, operator_results
from .tolerance import Tolerance, same_values, scale, wide
from .wrong_values import Step, is_index, is_telling, wrong_values


class CapturedGraph(Protocol):
    """A captured program, as far as a comparison needs it."""

    @property
    def program(self) -> Any: ...

    def run(self, *args: Any, **inputs: Any) -> Any: ...

    def tensors_of(self, args: tuple[Any, ...], inputs: Mapping[str, Any]) -> list[torch.Tensor]: ...


@dataclasses.dataclass
class Difference:
    """The largest difference of one output; the relative one is by its scale and the element's own magnitude."""

    name: str
    absolute: float
    relative: float


def compare(
    captured: CapturedGraph, model: Any, inputs: dict[str, Any], *, atol: float | None = None
) -> list[Difference]:
    """One row an output; raises ExportError (E0401) where values differ by more than the tolerance."""
    with torch.no_grad():
        rng = torch.get_rng_state()
        want = flatten(model(**copy.deepcopy(inputs)))
        torch.set_rng_state(rng)
        got = flatten(captured.run(**copy.deepcopy(inputs)))
    found = dict(zip(got.names, got.leaves, strict=True))
    wanted = as_in_graph(dict(zip(want.names, want.leaves, strict=True)), found)  # a file may have joined lists
    if wanted.keys() != found.keys():
        raise problem(
            "E0401",
            f"the model gives {', '.join(want.names)}, the graph {', '.join(got.names)}",
            "capture again with these inputs",
        )
    rows, wrong = [], []
    for name, value in found.items():
        difference, same = _difference(name, value, wanted[name], atol)
        rows += difference
        wrong += [] if same else difference
    if wrong:
        dtypes = {w.dtype for w in want.leaves if isinstance(w, torch.Tensor)}
        raise _mismatch(captured, model, inputs, wrong, Tolerance.of(dtypes, atol))
    return rows


def _difference(name: str, got: Any, want: Any, atol: float | None) -> tuple[list[Difference], bool]:
    """Numbers are compared as tensors are; of anything else there is a row only where it differs."""
    got, want = (torch.tensor(x) if isinstance(x, bool | int | float) else x for x in (got, want))
    if not (isinstance(got, torch.Tensor) and isinstance(want, torch.Tensor)):
        same = not isinstance(got, torch.Tensor) and not isinstance(want, torch.Tensor) and got == want
        return ([] if same else [Difference(name, float("inf"), float("inf"))]), same
    if got.shape != want.shape or got.dtype != want.dtype:
        return [Difference(name, float("inf"), float("inf"))], False
    if want.numel() == 0:
        return [Difference(name, 0.0, 0.0)], True
    gap = (wide(got) - wide(want)).abs()
    size = (wide(want).abs() + scale(want)).clamp_min(torch.finfo(torch.float32).tiny)
    return [Difference(name, gap.max().item(), (gap / size).max().item())], same_values(got, want, atol)


def _mismatch(
    captured: CapturedGraph, model: Any, inputs: dict[str, Any], wrong: list[Difference], tolerance: Tolerance
) -> ExportError:
    what = "values differ from the model: " + ", ".join(f"{d.name} by {d.absolute:.3g}" for d in wrong[:4])
    first = first_difference(captured, model, inputs, tolerance)
    if first is None:
        return problem("E0401", what, "report it with the model's config")
    if first["part_in"]:
        what += f"; they part in {first['part_in']}, whose inputs agree"
    what += f"; the first node that differs is {first['text'].strip()}"
    place = {key: first[key] for key in ("file", "line", "function", "module")}
    return problem("E0401", what, "capture again with inputs of this size", where=place)


def first_difference(
    captured: CapturedGraph, model: Any, inputs: dict[str, Any], tolerance: Tolerance | None = None
) -> dict[str, Any] | None:
    """The first node whose value is not one that the model computes, as a row of `program.nodes()`. `part_in` is the
    first module whose inputs agree with those in eager mode and whose result does not; the node is looked for in it."""
    rows = captured.program.nodes()
    tensors = captured.tensors_of((), inputs)
    calls = module_calls(model, inputs)
    call = _first_module(captured, rows, tensors, calls, tolerance)
    within = None if call is None or call is calls[-1] else call.path  # the last is the model itself
    pool = Pool(tolerance)
    for tensor in call.inputs if call else tensors:
        pool.add(tensor)
    for result in operator_results(model, inputs, within):
        pool.add(result.tensor)
    index = _first_node(captured, rows, tensors, pool, within)
    return None if index is None else rows[index] | {"part_in": "" if call is None else call.path}


def _first_module(
    captured: CapturedGraph,
    rows: list[dict[str, Any]],
    tensors: list[torch.Tensor],
    calls: list[ModuleCall],
    tolerance: Tolerance | None,
) -> ModuleCall | None:
    """A result that the graph does not have in any node of the module's shape is one that nobody uses."""
    pool = Pool(tolerance)
    for call in calls:
        for tensor in [*call.inputs, *call.outputs]:
            pool.add(tensor, id(tensor))
    met: set[int] = set()
    shapes: dict[str, set[tuple[Any, ...]]] = {}

    def meet(values: list[torch.Tensor], module: str = "") -> None:
        for value in values:
            shapes.setdefault(module, set()).add((value.dtype, *value.shape))
            met.update(known.note for known in pool.matches(value))

    meet([*tensors, *captured.program.weights().values()])
    captured.program.run(tensors, lambda index, results: meet(results, rows[index]["module"]))

    def is_made(tensor: torch.Tensor, path: str) -> bool:
        kind = (tensor.dtype, *tensor.shape)
        return any(kind in found for module, found in shapes.items() if is_beneath(module, path))

    for call in calls:
        differs = any(id(tensor) not in met and is_made(tensor, call.path) for tensor in call.outputs)
        if differs and all(id(tensor) in met for tensor in call.inputs):
            return call
    return None


_VALUE = re.compile(r"%[\w.]+")
_NODE = re.compile(r"\s*((?:%[\w.]+, )*%[\w.]+) = (.*)")


def _first_node(
    captured: CapturedGraph, rows: list[dict[str, Any]], tensors: list[torch.Tensor], pool: Pool, within: str | None
) -> int | None:
    inside = [i for i, row in enumerate(rows) if within is None or is_beneath(row["module"], within)]
    steps = {i: _step(rows[i]["text"]) for i in inside}
    right: dict[str, bool] = {}
    telling: set[str] = set()

    def look(index: int, results: list[torch.Tensor]) -> None:
        if index not in steps:
            return
        for name, value in zip(steps[index].gives, results, strict=False):
            right[name] = is_index(value) or any(True for _ in pool.matches(value))
            if is_telling(value):
                telling.add(name)

    captured.program.run(tensors, look)
    wrong = [name for name, is_right in right.items() if not is_right]
    found = wrong_values(list(steps.values()), right, telling.__contains__, wrong)
    return inside[found[0][0]] if found else None


def _step(text: str) -> Step:
    """The values of a node: `%4, %5 = aten.op(self=%1)`; a node without results gives none."""
    found = _NODE.match(text)
    return Step([], []) if found is None else Step(_VALUE.findall(found[2]), _VALUE.findall(found[1]))
