"""Guards are tested, not believed: a condition that the model asked of a size is tried at a size on its other side.

Most conditions change nothing (`seq > 1 and mask is None`, with a mask given): the capture there gives the same graph,
and the guard is dropped. Where the graphs differ, the one that is right at both sizes by value is kept, or the guard
stays. A trial meets conditions of its own; a range is widened as far as the next of them, which is tried in turn."""

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
from .trial_inputs import resized

_LARGER = 16  # times the example: a model at sizes far above it would take long
_STEPS = 6  # bounds in a row that are tried on each side; the next one stays
_CONDITIONS = 2  # sizes at most that are tried for them: each costs a capture and some runs of the model


def tested(model: Any, captured: Captured, axes: Axes) -> Captured:
    for below in (True, False):
        real: set[str] = set()  # dimensions whose nearest bound makes a difference
        for _ in range(_STEPS):
            narrowed = {name: size for name, size in _narrowed(captured, below).items() if name not in real}
            if not narrowed:
                break
            before = _ranges(captured)
            captured = _tested_on_one_side(model, captured, axes, narrowed)
            real |= {name for name in narrowed if _ranges(captured).get(name) == before.get(name)}
    against = sorted(set(captured.program.sizes_against()))
    for name, size in against if len(against) <= _CONDITIONS else ():
        captured = _freed(model, captured, axes, name, size)
    return captured


def _ranges(captured: Captured) -> dict[str, tuple[int, int | None]]:
    return {dim["name"]: (dim["lo"], dim["hi"]) for dim in captured.program.dims()}


def _freed(model: Any, captured: Captured, axes: Axes, name: str, size: int) -> Captured:
    """Without a condition that narrows no range (`seq % 16 == 0`, and a branch without padding), if one graph is right
    where it holds and where it does not."""
    other = _capture_at(model, captured, axes, {name: size}, Trial.KEPT)
    if other is None or _pinned(other, {name: size}):
        return captured
    dim = next(dim for dim in captured.program.dims() if dim["name"] == name)
    further = [at for at in (2 * dim["hint"], 2 * dim["hint"] + 1) if dim["hi"] is None or at <= dim["hi"]]
    for graph, inputs in ((captured, other.inputs), (other, captured.inputs)):
        program = graph.program.copy()
        if graph is other:
            _within(program, captured.program)
            program.add_conditions(captured.program)
        program.drop_conditions({name: size}, captured.program)
        program.widen(other.program, [], captured.program)
        freed = Captured(program, captured.inputs, graph.outputs, graph.in_graph)
        admitted = [at for at in further if _admits(program, name, at)]
        beyond = [resized(captured, {name: at}) for at in admitted]
        if all(right_at(model, freed, at, {}) for at in (inputs, *beyond)):
            return freed
    return captured


def _admits(program: Any, name: str, size: int) -> bool:
    dim = next((dim for dim in program.dims() if dim["name"] == name), None)
    return dim is not None and dim["lo"] <= size and (dim["hi"] is None or size <= dim["hi"])


def _tested_on_one_side(model: Any, captured: Captured, axes: Axes, narrowed: dict[str, int]) -> Captured:
    other = _capture_at(model, captured, axes, narrowed, Trial.COMPARED)
    if other is not None and not _pinned(other, narrowed) and captured.program.same_as(other.program):
        return _widened(captured, other, narrowed)
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
        return capture_once(model, resized(captured, sizes), axes, trial=trial)
    except Exception:  # the model itself does not run at this size: the guard is real
        return None


def _decided(model: Any, captured: Captured, other: Captured | None, sizes: dict[str, int]) -> Captured:
    if other is None:
        return captured
    wider = _widened(_copy_of(captured), other, sizes)
    further = _further(wider, sizes)
    # Where the model settled for one size, the graphs were compared there, and a range that opens upwards has others.
    same = captured.program.same_as(other.program) and not (further and _pinned(other, sizes))
    if same or _serves(model, captured, other.inputs, sizes, further):
        return wider
    # A graph that ends at the next bound again (one more turn of a loop) is larger, and hardly of more use.
    reaches_far = all(size >= 2 * sizes[name] + 1 for name, size in further.items())
    if (
        reaches_far
        and _serves(model, other, captured.inputs, sizes, further)
        and _right_where_others_grow(model, other, captured, sizes)
    ):
        program = other.program.copy()
        _within(program, captured.program)
        program.add_conditions(captured.program)
        chosen = Captured(program, captured.inputs, other.outputs, other.in_graph)
        program.widen(other.program, list(sizes), captured.program)
        return chosen
    return captured


def _copy_of(captured: Captured) -> Captured:
    return Captured(captured.program.copy(), captured.inputs, captured.outputs, captured.in_graph)


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


def _further(wider: Captured, sizes: dict[str, int]) -> dict[str, int]:
    """For a range that opens upwards a second size: the first may be the last that is served."""
    further = {}
    for dim in wider.program.dims():
        size = sizes.get(dim["name"])
        if size is not None and size > dim["hint"]:
            further[dim["name"]] = 2 * size + 1 if dim["hi"] is None else min(2 * size + 1, dim["hi"])
    return further


def _serves(model: Any, captured: Captured, inputs: Flat, sizes: dict[str, int], further: dict[str, int]) -> bool:
    if not right_at(model, captured, inputs, sizes):
        return False
    return not further or right_at(model, captured, resized(captured, further), sizes | further)


def _right_where_others_grow(model: Any, other: Captured, captured: Captured, sizes: dict[str, int]) -> bool:
    """A table that a long text made anew is long enough for this text alone: not with a past before it. So the graph
    from the other side has to be right with the other sizes larger, too, as far as the model itself runs."""
    dims = [dim for dim in captured.program.dims() if not dim["from_data"] and dim["name"] not in sizes]
    for larger in ({d["name"]: 2 * d["hint"] + 1 for d in dims}, {d["name"]: d["hint"] + 1 for d in dims}):
        within = {d["name"]: larger[d["name"]] for d in dims if d["hi"] is None or d["hi"] >= larger[d["name"]]}
        inputs = resized(captured, within)
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
            want = flatten(model(**copy.deepcopy(unflatten(inputs.leaves, inputs.spec)))).leaves
            torch.set_rng_state(rng)
            values, _ = trial.run(tensors)
    except Exception:  # neither the model nor the graph has to run at this size
        return False
    finally:
        torch.set_rng_state(rng)
    computed = iter(values)
    leaves = zip(captured.in_graph, captured.outputs.leaves, strict=True)
    got = [next(computed) if inside else leaf for inside, leaf in leaves]
    return len(got) == len(want) and all(map(_same, got, want))


def _same(got: Any, want: Any) -> bool:
    if isinstance(want, torch.Tensor) and isinstance(got, torch.Tensor):
        return same_values(got, want)
    return type(got) is type(want) and bool(got == want)


def _widened(captured: Captured, other: Captured, sizes: dict[str, int]) -> Captured:
    captured.program.widen(other.program, list(sizes), captured.program)
    return captured


def _set_ranges(program: Any, sizes: dict[str, int]) -> None:
    """Room for the size that is tried."""
    for dim in program.dims():
        if dim["name"] in sizes:
            size, high = sizes[dim["name"]], dim["hi"]
            program.set_range(dim["name"], min(size, dim["lo"]), None if high is None else max(size, high))
