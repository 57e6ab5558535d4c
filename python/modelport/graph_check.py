"""Compares a captured graph with its model, value by value, and names the first node where they part."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch

from .captured import Captured
from .errors import problem
from .structure import flatten


@dataclasses.dataclass
class Difference:
    """The largest difference of one output."""

    name: str
    absolute: float
    relative: float


def compare(captured: Captured, model: Any, inputs: dict[str, Any], *, atol: float, rtol: float) -> list[Difference]:
    """One row an output; raises ExportError (E0401) where values differ by more than the tolerance."""
    with torch.no_grad():
        rng = torch.get_rng_state()
        want = flatten(model(**_copy(inputs)))
        torch.set_rng_state(rng)
        got = flatten(captured.run(**_copy(inputs)))
    rows, wrong = [], []
    for name, w, g in zip(want.names, want.leaves, got.leaves, strict=True):
        if not isinstance(w, torch.Tensor):
            continue
        rows.append(_difference(name, g, w))
        if not (g.shape == w.shape and torch.allclose(g, w.to(g.dtype), atol=atol, rtol=rtol, equal_nan=True)):
            wrong.append(rows[-1])
    if wrong:
        _raise_with_first_node(captured, model, inputs, wrong, atol, rtol)
    return rows


def _copy(inputs: dict[str, Any]) -> dict[str, Any]:
    import copy

    return copy.deepcopy(inputs)


def _difference(name: str, got: torch.Tensor, want: torch.Tensor) -> Difference:
    if got.shape != want.shape or want.numel() == 0:
        return Difference(name, 0.0 if got.shape == want.shape else float("inf"), 0.0)
    gap = (got.to(torch.complex128) - want.to(torch.complex128)).abs()
    return Difference(name, gap.max().item(), (gap / want.to(torch.complex128).abs().clamp_min(1e-12)).max().item())


def _raise_with_first_node(
    captured: Captured, model: Any, inputs: dict[str, Any], wrong: list[Difference], atol: float, rtol: float
) -> None:
    summary = ", ".join(f"{d.name} by {d.absolute:.3g}" for d in wrong[:4])
    first = first_difference(captured, model, inputs, atol=atol, rtol=rtol)
    if first is None:
        raise problem("E0401", f"values differ from the model: {summary}", "report it with the model's config")
    place = {key: first[key] for key in ("file", "line", "function", "module")}
    raise problem(
        "E0401",
        f"values differ from the model: {summary}; the first node that differs is {first['text'].strip()}",
        "capture again with inputs of this size",
        where=place,
    )


def first_difference(
    captured: Captured, model: Any, inputs: dict[str, Any], *, atol: float, rtol: float
) -> dict[str, Any] | None:
    """The first node whose value in the graph is not the one that the model computes, as a row of `program.nodes()`.

    The model is captured again on these inputs; as long as both captures have the same nodes, the values that the model
    computed on the way are those of the second program."""
    from .capturing import capture

    again = capture(model, inputs, dynamic=False, test_guards=False)
    tensors = captured._tensors((), inputs)
    eager: list[list[torch.Tensor]] = []
    again.program.run(again._tensors((), inputs), lambda _index, results: eager.append([r.clone() for r in results]))
    names = [row["op"] for row in again.program.nodes()]
    rows = captured.program.nodes()
    found: list[int] = []

    def watch(index: int, results: list[torch.Tensor]) -> None:
        if found or index >= len(names) or rows[index]["op"] != names[index]:
            if not found:
                found.append(index)
            return
        for got, want in zip(results, eager[index], strict=False):
            same = got.shape == want.shape and torch.allclose(got, want, atol=atol, rtol=rtol, equal_nan=True)
            if not same:
                found.append(index)
                return

    captured.program.run(tensors, watch)
    return rows[found[0]] if found else None
