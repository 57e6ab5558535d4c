"""Guards are tested, not believed: a condition that the model asked of a size is tried at a size on its other side.

Most conditions change nothing (`seq > 1 and mask is None`, with a mask given): the capture there gives the same graph,
and the guard is dropped. Where the graphs differ, the one that is right at both sizes by value is kept, or the guard
stays. A trial meets conditions of its own; a range is widened as far as the next of them, which is tried in turn."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..base.structure import Flat
from .attempts import capture_once
from .captured import Attempt, Captured
from .comparison import Place, not_wrong, right_at, runs
from .dynamic import Axes
from .recording import Trial
from .trial_inputs import Sizes, inside, resized

_At = Callable[[Sizes], Flat]  # the example at other sizes
_Resize = Callable[[Captured, Sizes], Flat]

_LARGER = 16  # times the example: a model at sizes far above it would take long
_STEPS = 6  # bounds in a row that are tried on each side; the next one stays
_AWAY = (0, 1, -1, 2, -2, 4, -4, 8, -8, 16, -16)  # from a size, where its neighbours are looked for
_NEIGHBOURS = 4  # of a size: conditions on remainders are met and broken among them
_SMALL = 64  # nodes of a graph whose sizes are tried in any combination
_TRIED_BY_VALUE = 4  # conditions that followed from others, with a run of the model for each
_CONDITIONS = 3  # sizes at most that are tried for them: each costs a capture and some runs of the model


def tested(model: Any, captured: Captured, axes: Axes) -> Captured:
    attempts = list(captured.attempts)
    seen: dict[str, set[int]] = {}  # sizes by dimension at which the model was captured
    for below in (True, False):
        real: set[str] = set()  # dimensions whose nearest bound makes a difference
        for _ in range(_STEPS):
            narrowed = {name: size for name, size in _narrowed(captured, below).items() if name not in real}
            if not narrowed:
                break
            for name, size in narrowed.items():
                seen.setdefault(name, set()).add(size)
            before = _ranges(captured)
            captured = _tested_on_one_side(model, captured, axes, narrowed, resized)
            stays = {name for name in narrowed if _ranges(captured).get(name) == before.get(name)}
            tied = {name: narrowed[name] for name in stays if _goes_along(captured, {name: narrowed[name]})}
            if tied:
                captured = _tested_on_one_side(model, captured, axes, tied, _with_what_is_tied)
                stays = {name for name in narrowed if _ranges(captured).get(name) == before.get(name)}
            real |= stays
            attempts += [_note({name: size}, name in stays) for name, size in narrowed.items()]
    tried: set[tuple[str, int]] = set()
    for _ in range(_CONDITIONS):
        against = _farthest(captured, tried)
        if against is None:
            break
        tried.add(against)
        freed = _freed(model, captured, axes, *against, seen.get(against[0], set()))
        attempts.append(_note(dict([against]), freed is captured))
        captured = freed
    _close(model, captured)
    captured.attempts = attempts
    return captured


def _note(sizes: Sizes, stays: bool) -> Attempt:
    at = ", ".join(f"{name} = {size}" for name, size in sizes.items())
    outcome = "it makes a difference, and stays" if stays else "one graph serves both sides, and it goes"
    return Attempt(f"at {at}", "a condition of the model is broken there", outcome)


def _farthest(captured: Captured, tried: set[tuple[str, int]]) -> tuple[str, int] | None:
    """Of sizes that each break a condition, the one farthest from the example: it breaks most of them."""
    hints = {dim["name"]: dim["hint"] for dim in captured.program.dims()}
    left = sorted(set(captured.program.sizes_against()) - tried, key=lambda row: (-abs(row[1] - hints[row[0]]), row))
    return left[0] if left else None


def _close(model: Any, captured: Captured) -> None:
    """What followed from a bound that is gone was never tried: it is tried by value, or it is a limit of its own."""
    left = _TRIED_BY_VALUE
    while open_at := captured.program.open_conditions():
        sizes = open_at[0]
        harmless = bool(sizes) and left > 0 and right_at(model, captured, resized(captured, sizes), {})
        left -= 1
        captured.program.decide_condition(0, harmless)


def _ranges(captured: Captured) -> dict[str, tuple[int, int | None]]:
    return {dim["name"]: (dim["lo"], dim["hi"]) for dim in captured.program.dims()}


def _freed(model: Any, captured: Captured, axes: Axes, name: str, size: int, seen: set[int]) -> Captured:
    """Without a condition that narrows no range (`seq % 16 == 0`, and a branch without padding), if one graph is right
    where it holds and where it does not. The model may ask for it at some sizes only, such as those near one of
    `seen`."""
    other = _capture_of(model, resized(captured, {name: size}), axes, Trial.KEPT)
    if other is None or _pinned(other, {name: size}) or not captured.program.data_decide_alike(other.program):
        return captured
    graphs = ((captured, other.inputs), (other, captured.inputs))
    for graph, inputs in graphs if _as_open(other, captured) else graphs[:1]:
        program = graph.program.copy()
        if graph is other:
            program.take_validity(captured.program)
        program.drop_conditions({name: size}, captured.program)
        if not program.widen(other.program, [], captured.program):
            continue
        freed = Captured(program, captured.inputs, graph.outputs, graph.in_graph)
        around = [size, *_nearby(program, name, size, *seen)]
        places = _places(functools.partial(resized, captured), _crossed(program, name, around), with_room=False)
        if right_at(model, freed, inputs, {}, with_counters=True) and not_wrong(
            model, freed, places, with_counters=True
        ):
            return freed
    return captured


def _nearby(program: Any, name: str, *tried: int) -> list[int]:
    """Sizes around the example and around those that were tried, as far as the program is for them: graphs that differ
    may agree at one size by chance."""
    dim = next((dim for dim in program.dims() if dim["name"] == name), None)
    if dim is None:
        return []
    hints = {dim["name"]: dim["hint"] for dim in program.dims()}
    # The smallest size is where slices become empty and broadcasting begins.
    found = {at for at in (dim["lo"],) if program.admits(hints | {name: at})}
    for center in (dim["hint"], *tried, 2 * dim["hint"]):
        near = [center + away for away in _AWAY]
        near = [at for at in near if inside(at, dim["lo"], dim["hi"]) and program.admits(hints | {name: at})]
        found.update(near[:_NEIGHBOURS])
    return sorted(found - {dim["hint"], tried[0]})


def _crossed(program: Any, name: str, sizes: list[int]) -> list[Sizes]:
    """Each size of one dimension with the others as in the example, with all of them one larger, and with all of them
    far from each other: graphs that differ by another dimension may agree at the example's sizes by chance."""
    dims = [dim for dim in program.dims() if not dim["from_data"] and dim["name"] != name]
    hints = {dim["name"]: dim["hint"] for dim in dims}
    larger = {dim["name"]: dim["hint"] + 1 for dim in dims}
    apart = {dim["name"]: 2 * dim["hint"] + 1 + turn for turn, dim in enumerate(dims)}
    crossed = [{name: at} for at in sizes]
    for others in (larger, apart) if program.node_count() <= _SMALL else (larger,):
        within = {d["name"]: others[d["name"]] for d in dims if inside(others[d["name"]], d["lo"], d["hi"])}
        crossed += [within | {name: at} for at in sizes if within and program.admits(hints | within | {name: at})]
    return crossed


def _tested_on_one_side(model: Any, captured: Captured, axes: Axes, narrowed: Sizes, inputs_at: _Resize) -> Captured:
    other = _capture_of(model, inputs_at(captured, narrowed), axes, Trial.COMPARED)
    same = other is not None and not _pinned(other, narrowed) and captured.program.same_as(other.program)
    if other is not None and same and captured.program.widen(other.program, list(narrowed), captured.program):
        return captured
    for name, size in narrowed.items():
        other = _capture_of(model, inputs_at(captured, {name: size}), axes, Trial.KEPT)
        captured = _decided(model, captured, other, {name: size}, inputs_at)
    return captured


def _narrowed(captured: Captured, below: bool) -> Sizes:
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


def _goes_along(captured: Captured, sizes: Sizes) -> Sizes:
    """What a condition ties to one of these sizes, and is as large in the example: a mask that is as long as the text
    (`mask.shape[1] >= seq`)."""
    hints = {dim["name"]: dim["hint"] for dim in captured.program.dims() if not dim["from_data"]}
    tied = [set(guard["symbols"]) for guard in captured.guards if guard["effect"] == "kept"]
    along = {
        other: size
        for name, size in sizes.items()
        for other in set().union(*(symbols for symbols in tied if name in symbols))
        if hints.get(other) == hints.get(name) and other not in sizes
    }
    possible = all(size >= 0 for shape in captured.program.input_sizes(along | sizes) for size in shape)
    return along if possible else {}


def _with_what_is_tied(captured: Captured, sizes: Sizes) -> Flat:
    return resized(captured, _goes_along(captured, sizes) | sizes)


def _capture_of(model: Any, inputs: Flat, axes: Axes, trial: Trial) -> Captured | None:
    try:
        return capture_once(model, inputs, axes, trial=trial)
    except Exception:  # the model itself does not run at this size: the guard is real
        return None


def _decided(
    model: Any,
    captured: Captured,
    other: Captured | None,
    sizes: Sizes,
    inputs_at: _Resize,
) -> Captured:
    if other is None:
        return captured
    wider = _copy_of(captured)
    if not wider.program.widen(other.program, list(sizes), captured.program):
        return captured
    further = _further(wider, sizes)
    at = functools.partial(inputs_at, captured)
    # Where the model settled for one size, the graphs were compared there, and a range that opens upwards has others.
    same = captured.program.same_as(other.program) and not (further and _pinned(other, sizes))
    if not same and not captured.program.data_decide_alike(other.program):
        return captured
    if same or (
        _serves(model, captured, other.inputs, sizes, further, at)
        and _right_nearby(model, captured, wider, sizes, at, captured)
    ):
        return wider
    # A graph that ends at the next bound again (one more turn of a loop) is larger, and hardly of more use.
    reaches_far = all(size >= 2 * sizes[name] + 1 for name, size in further.items())
    if (
        reaches_far
        and _as_open(other, captured)
        and _serves(model, other, captured.inputs, sizes, further, at)
        and _right_where_others_grow(model, other, captured, sizes)
    ):
        program = other.program.copy()
        program.take_validity(captured.program)
        chosen = Captured(program, captured.inputs, other.outputs, other.in_graph)
        widened = program.widen(other.program, list(sizes), captured.program)
        # Rows of the example that are alike hide that one stood for all: its data in another order show it.
        right = widened and not_wrong(model, chosen, [(lambda: captured.inputs, {}, True)])
        return chosen if right and _right_nearby(model, chosen, chosen, sizes, at) else captured
    return captured


def _right_nearby(
    model: Any, captured: Captured, wider: Captured, sizes: Sizes, at: _At, known: Captured | None = None
) -> bool:
    """At the sizes that are new; those of `known` are not in question."""
    old = {} if known is None else _ranges(known)
    for name, size in sizes.items():
        around = [size, *_nearby(wider.program, name, size)]
        new = [near for near in around if name not in old or not inside(near, *old[name])]
        # Of large models many sizes belong together (a mask and its text): what they do apart is nobody's question.
        small = wider.program.node_count() <= _SMALL
        tried = _crossed(wider.program, name, new) if small else [{name: near} for near in new]
        if not not_wrong(model, captured, _places(at, tried)):
            return False
    return True


def _places(at: _At, sizes: list[Sizes], *, with_room: bool = True) -> list[Place]:
    return [(functools.partial(at, tried), tried if with_room else {}, len(tried) == 1) for tried in sizes]


def _copy_of(captured: Captured) -> Captured:
    return Captured(captured.program.copy(), captured.inputs, captured.outputs, captured.in_graph)


def _as_open(other: Captured, captured: Captured) -> bool:
    """Whether no further symbols are fixed, or the same as others."""
    return other.program.replaced_sizes() <= captured.program.replaced_sizes()


def _pinned(captured: Captured, sizes: Sizes) -> bool:
    return not sizes.keys().isdisjoint(captured.program.replacements())


def _further(wider: Captured, sizes: Sizes) -> Sizes:
    """For a range that opens upwards a second size: the first may be the last that is served."""
    further = {}
    for dim in wider.program.dims():
        size = sizes.get(dim["name"])
        if size is not None and size > dim["hint"]:
            further[dim["name"]] = 2 * size + 1 if dim["hi"] is None else min(2 * size + 1, dim["hi"])
    return further


def _serves(model: Any, graph: Captured, inputs: Flat, sizes: Sizes, further: Sizes, at: _At) -> bool:
    """At the size that was tried and, where there is one, at a size far beyond it."""
    if not right_at(model, graph, inputs, sizes):
        return False
    return not further or right_at(model, graph, at(further), sizes | further)


def _right_where_others_grow(model: Any, other: Captured, captured: Captured, sizes: Sizes) -> bool:
    """A table that a long text made anew is long enough for this text alone: not with a past before it. So the graph
    from the other side has to be right with the other sizes larger, too, as far as the model itself runs."""
    dims = [dim for dim in captured.program.dims() if not dim["from_data"] and dim["name"] not in sizes]
    for larger in ({d["name"]: 2 * d["hint"] + 1 for d in dims}, {d["name"]: d["hint"] + 1 for d in dims}):
        within = {d["name"]: larger[d["name"]] for d in dims if d["hi"] is None or d["hi"] >= larger[d["name"]]}
        inputs = resized(captured, within)
        if within and runs(model, inputs):
            return right_at(model, other, inputs, sizes)
    return True
