"""Guards are tested, not believed: a condition that the model asked of a size is tried at a size on its other side.

Most conditions change nothing (`seq > 1 and mask is None`, with a mask given): the capture there gives the same graph,
and the guard is dropped. Where the graphs differ, the one that is right at both sizes by value is kept, or the guard
stays."""

from __future__ import annotations

import copy
from typing import Any

import torch

from .captured import Captured
from .capturing import Trial, capture_once
from .dynamic import Axes
from .model_state import state_of
from .structure import Flat, flatten, unflatten
from .tolerance import same_values

_LARGER = 16  # times the example: a model at sizes far above it would take long
_CONDITIONS = 2  # sizes at most that are tried for them: each costs a capture and some runs of the model


def tested(model: Any, captured: Captured, axes: Axes) -> Captured:
    for below in (True, False):
        captured = _tested_on_one_side(model, captured, axes, _narrowed(captured, below))
    against = sorted(set(captured.program.sizes_against()))
    for name, size in against if len(against) <= _CONDITIONS else ():
        captured = _freed(model, captured, axes, name, size)
    return captured


def _freed(model: Any, captured: Captured, axes: Axes, name: str, size: int) -> Captured:
    """Without a condition that narrows no range (`seq % 16 == 0`, and a branch without padding), if one graph is right
    where it holds and where it does not."""
    other = _capture_at(model, captured, axes, {name: size}, Trial.NONE)
    if other is None or _pinned(other, {name: size}):
        return captured
    dim = next(dim for dim in captured.program.dims() if dim["name"] == name)
    further = [at for at in (2 * dim["hint"], 2 * dim["hint"] + 1) if dim["hi"] is None or at <= dim["hi"]]
    beyond = [_resized(captured, {name: at}) for at in further]
    for graph, against, inputs in ((captured, size, other.inputs), (other, dim["hint"], captured.inputs)):
        program = graph.program.copy()
        program.drop_conditions({name: against})
        _within(program, captured.program)
        freed = Captured(program, captured.inputs, graph.outputs, graph.in_graph)
        if all(right_at(model, freed, at, {}) for at in (inputs, *beyond)):
            return freed
    return captured


def _tested_on_one_side(model: Any, captured: Captured, axes: Axes, narrowed: dict[str, int]) -> Captured:
    if not narrowed:
        return captured
    other = _capture_at(model, captured, axes, narrowed, Trial.COMPARED)
    if other is not None and not _pinned(other, narrowed) and captured.program.same_as(other.program):
        return _widened(captured, narrowed)
    for name, size in narrowed.items():
        other = _capture_at(model, captured, axes, {name: size}, Trial.KEPT)
        captured = _decided(model, captured, other, {name: size})
    return captured


def _narrowed(captured: Captured, below: bool) -> dict[str, int]:
    """Dimensions of the inputs that guards narrowed, with a size on the other side of the nearest bound."""
    sizes = {}
    for dim in captured.program.dims():
        if dim["from_data"]:
            continue
        largest = _LARGER * dim["hint"] + _LARGER
        if below and dim["lo"] > dim["declared_lo"]:
            sizes[dim["name"]] = dim["lo"] - 1
        elif not below and dim["hi"] is not None and (dim["declared_hi"] is None or dim["hi"] < dim["declared_hi"]):
            sizes[dim["name"]] = dim["hi"] + 1
        if sizes.get(dim["name"], 0) > largest:
            del sizes[dim["name"]]
    return sizes


def _capture_at(model: Any, captured: Captured, axes: Axes, sizes: dict[str, int], trial: Trial) -> Captured | None:
    try:
        return capture_once(model, _resized(captured, sizes), axes, trial=trial)
    except Exception:  # the model itself does not run at this size: the guard is real
        return None


def _resized(captured: Captured, sizes: dict[str, int]) -> Flat:
    """The example inputs at other sizes: rows repeat or are cut off, so that values stay admissible."""
    flat = captured.inputs
    shapes = iter(captured.program.input_sizes(sizes))
    leaves = [_at_shape(leaf, next(shapes)) if isinstance(leaf, torch.Tensor) else leaf for leaf in flat.leaves]
    return Flat(flat.names, leaves, flat.spec)


def _at_shape(tensor: torch.Tensor, shape: list[int]) -> torch.Tensor:
    for axis, size in enumerate(shape):
        if tensor.shape[axis] != size:
            tensor = tensor.index_select(axis, torch.arange(size) % max(tensor.shape[axis], 1))
    return tensor


def _decided(model: Any, captured: Captured, other: Captured | None, sizes: dict[str, int]) -> Captured:
    if other is None:
        return captured
    further = _further(captured, sizes)
    # Where the model settled for one size, the graphs were compared there, and a range that opens upwards has others.
    same = captured.program.same_as(other.program) and not (further and _pinned(other, sizes))
    if same or _serves(model, captured, other.inputs, sizes, further):
        return _widened(captured, sizes)
    if _serves(model, other, captured.inputs, sizes, further) and _right_where_others_grow(
        model, other, captured, sizes
    ):
        _within(other.program, captured.program)
        return _widened(Captured(other.program, captured.inputs, other.outputs, other.in_graph), sizes)
    return captured


def _pinned(captured: Captured, sizes: dict[str, int]) -> bool:
    return not sizes.keys().isdisjoint(captured.program.replacements())


def _within(program: Any, known: Any) -> None:
    """Sizes that both captures admit. A trial records no bounds: those that the first capture found hold for it too."""
    ranges = {dim["name"]: dim for dim in known.dims() if not dim["from_data"]}
    for dim in program.dims():
        if dim["name"] in ranges:
            first = ranges[dim["name"]]
            ends = [end for end in (dim["hi"], first["hi"]) if end is not None]
            program.set_range(dim["name"], max(dim["lo"], first["lo"]), min(ends, default=None))


def _further(captured: Captured, sizes: dict[str, int]) -> dict[str, int]:
    """For a range that opens upwards a second size: the first may be the last that is served."""
    hints = {dim["name"]: dim["hint"] for dim in captured.program.dims()}
    return {name: 2 * size + 1 for name, size in sizes.items() if size > hints[name]}


def _serves(model: Any, captured: Captured, inputs: Flat, sizes: dict[str, int], further: dict[str, int]) -> bool:
    if not right_at(model, captured, inputs, sizes):
        return False
    return not further or right_at(model, captured, _resized(captured, further), sizes | further)


def _right_where_others_grow(model: Any, other: Captured, captured: Captured, sizes: dict[str, int]) -> bool:
    """A table that a long text made anew is long enough for this text alone: not with a past before it. So the graph
    from the other side has to be right with the other sizes larger, too, as far as the model itself runs."""
    dims = [dim for dim in captured.program.dims() if not dim["from_data"] and dim["name"] not in sizes]
    for larger in ({d["name"]: 2 * d["hint"] + 1 for d in dims}, {d["name"]: d["hint"] + 1 for d in dims}):
        within = {d["name"]: larger[d["name"]] for d in dims if d["hi"] is None or d["hi"] >= larger[d["name"]]}
        inputs = _resized(captured, within)
        if within and _runs(model, inputs):
            return right_at(model, other, inputs, sizes)
    return True


def _runs(model: Any, inputs: Flat) -> bool:
    state = state_of(model if isinstance(model, torch.nn.Module) else None)
    rng = torch.get_rng_state()
    try:
        with torch.no_grad(), state.unchanged(lambda _tensor: None):
            model(**copy.deepcopy(unflatten(inputs.leaves, inputs.spec)))
    except Exception:
        return False
    finally:
        torch.set_rng_state(rng)
    return True


def right_at(model: Any, captured: Captured, inputs: Flat, sizes: dict[str, int]) -> bool:
    """Whether the graph gives the values of the model at a size that its guards exclude."""
    trial = captured.program.copy()
    _set_ranges(trial, sizes)
    tensors = [leaf for leaf in inputs.leaves if isinstance(leaf, torch.Tensor)]
    rng = torch.get_rng_state()
    # A model may settle for another kind of attention at a size, and keep to it afterwards.
    state = state_of(model if isinstance(model, torch.nn.Module) else None)
    try:
        with torch.no_grad(), state.unchanged(lambda _tensor: None):
            want = flatten(model(**copy.deepcopy(unflatten(inputs.leaves, inputs.spec)))).tensors().values()
            torch.set_rng_state(rng)
            values, _ = trial.run(tensors, None)
    except Exception:  # neither the model nor the graph has to run at this size
        return False
    finally:
        torch.set_rng_state(rng)
    got = [v for v in values if isinstance(v, torch.Tensor)]
    return len(got) == len(want) and all(map(same_values, got, want))


def _widened(captured: Captured, sizes: dict[str, int]) -> Captured:
    _set_ranges(captured.program, sizes)
    return captured


def _set_ranges(program: Any, sizes: dict[str, int]) -> None:
    """The range as far as it was tried: down to the size, or up to the declared bound."""
    for dim in program.dims():
        if dim["name"] not in sizes:
            continue
        size = sizes[dim["name"]]
        below = size < dim["lo"]
        program.set_range(dim["name"], size if below else dim["lo"], dim["hi"] if below else dim["declared_hi"])
