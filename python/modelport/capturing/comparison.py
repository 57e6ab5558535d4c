"""A graph against its model by value, at sizes that were not captured."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch

from ..base.errors import ExportError
from ..base.structure import Flat, flatten, unflatten
from ..models.state import state_of
from ..values.tolerance import same_values
from .captured import Captured
from .trial_inputs import Sizes, shuffled

# The inputs of a trial, room for their sizes, and whether the graph has to be for them.
Place = tuple[Callable[[], Flat], Sizes, bool]
_LOOKED_AT = 4096  # elements of an output, to find them


_DISTINCT = 4  # values that an output has to have at least, for its agreement to say something


_ROUND = 64  # a number with fewer digits than one over this may be the same by chance


_TIMES = 3  # that a difference has to be seen


_NODES_RUN = 4000  # by the runs of one decision together: a run of a small graph costs little, and says little


_RUNS = (16, 160)  # of one decision: at least for large graphs, at most for small ones


_ORDERS = 3  # of the data that are tried at a size of a large graph


_COSTLY = 1 << 16  # elements of the inputs: above, a run at a larger size counts for several


def right_at(model: Any, captured: Captured, inputs: Flat, sizes: Sizes, *, with_counters: bool = False) -> bool:
    """Whether the graph gives the values of the model at a size that its guards exclude; neither has to run there. The
    counters of a cache are symbols in a capture, and part of the structure else: `with_counters` they have to agree,
    too, which is only known where there are none."""
    return bool(_comparison(model, captured, inputs, sizes, with_counters=with_counters))


def not_wrong(model: Any, captured: Captured, places: list[Place], *, with_counters: bool = False) -> bool:
    """At each of these sizes, with the example's data as they are or in another order: graphs that differ may agree at
    one size, or for one order, by chance. The places that matter most come first, and those that would take long last.
    Where the model does not take another order, or the graph is not for such data, nothing is said."""
    least, most = min(_RUNS[0], _ORDERS * len(places)), _RUNS[1]
    runs = max(least, min(most, _NODES_RUN // max(1, captured.program.node_count())))
    weighed = sorted(((_weight(place[0](), captured.inputs), *place) for place in places), key=lambda place: place[0])
    left = float(runs)
    for turn in range(runs if places else 0):
        rounds, at = divmod(turn, len(places))
        weight, inputs, sizes, has_to = weighed[at]
        left -= weight
        if turn and left < 0:
            break
        agrees = None
        if rounds or at % 2:
            other = shuffled(inputs(), turn)
            agrees = _comparison(model, captured, other, sizes, doubtful=None, with_counters=with_counters)
        if agrees is None and rounds == 0:
            doubtful = False if has_to else None
            agrees = _comparison(model, captured, inputs(), sizes, doubtful, with_counters)
        if agrees is False:
            return False
    return True


def _weight(inputs: Flat, example: Flat) -> float:
    """Of a run, in runs at the example's size: attention grows with the square of what it attends to."""
    elements = _elements(inputs)
    return 1 if elements <= _COSTLY else max(1, (elements / _elements(example)) ** 2)


def _elements(inputs: Flat) -> int:
    return sum(leaf.numel() for leaf in inputs.leaves if isinstance(leaf, torch.Tensor))


def is_wrong(model: Any, captured: Captured, inputs: Flat) -> bool:
    """Whether graph and model both run, and differ each time: other threads may draw random numbers in between."""
    return all(_comparison(model, captured, inputs, {}, doubtful=None) is False for _ in range(_TIMES))


def runs(model: Any, inputs: Flat) -> bool:
    state = state_of(model if isinstance(model, torch.nn.Module) else None)
    rng = torch.get_rng_state()
    try:
        with torch.no_grad(), state.kept():
            model(**copy.deepcopy(unflatten(inputs.leaves, inputs.spec)))
    except Exception:
        return False
    finally:
        torch.set_rng_state(rng)
    return True


def _comparison(
    model: Any,
    captured: Captured,
    inputs: Flat,
    sizes: Sizes,
    doubtful: bool | None = False,
    with_counters: bool = False,
) -> bool | None:
    """None where the model itself does not run, or gives nothing that could tell graphs apart; `doubtful` where the
    graph says that it is not for such inputs, or random numbers differ, which other threads draw as well."""
    trial = captured.program.copy()
    _set_ranges(trial, sizes)
    tensors = [leaf for leaf in inputs.leaves if isinstance(leaf, torch.Tensor)]
    rng = torch.get_rng_state()
    # A model may settle for another kind of attention at a size, and keep to it afterwards.
    state = state_of(model if isinstance(model, torch.nn.Module) else None)
    try:
        with torch.no_grad(), state.kept():
            try:
                want = flatten(model(**copy.deepcopy(unflatten(inputs.leaves, inputs.spec)))).leaves
            except Exception:
                return None
            drawn = not torch.equal(torch.get_rng_state(), rng)
            torch.set_rng_state(rng)
            values, _ = trial.run(tensors)
    except ExportError as error:
        return doubtful if error.code == "E0304" else False
    except Exception:
        return False
    finally:
        torch.set_rng_state(rng)
    got = [x for leaf in captured.leaves_of(values) for x in (leaf if isinstance(leaf, list | tuple) else [leaf])]
    if len(got) != len(want) and not with_counters:
        got, want = ([leaf for leaf in leaves if isinstance(leaf, torch.Tensor)] for leaves in (got, want))
    if len(got) != len(want) or not all(map(_same, got, want)):
        return doubtful if drawn else False
    return True if any(map(_is_telling, want)) else None


def _is_telling(value: Any) -> bool:
    """Counts, flags and tensors of zeros agree by chance: a number with many digits is evidence, or several numbers."""
    if not isinstance(value, torch.Tensor) or not (value.is_floating_point() or value.is_complex()):
        return False
    some = value.detach().reshape(-1)[:_LOOKED_AT]
    some = (torch.view_as_real(some) if some.is_complex() else some).double()
    # What is quicker to find, and nearly always there, is asked first.
    return bool((some * _ROUND).frac().abs().gt(0).any()) or len(some.unique()) >= _DISTINCT


def _same(got: Any, want: Any) -> bool:
    if isinstance(want, torch.Tensor) and isinstance(got, torch.Tensor):
        return same_values(got, want)
    return type(got) is type(want) and bool(got == want)


def _set_ranges(program: Any, sizes: Sizes) -> None:
    """Room for the size that is tried."""
    for dim in program.dims():
        if dim["name"] in sizes:
            size, high = sizes[dim["name"]], dim["hi"]
            program.set_range(dim["name"], min(size, dim["lo"]), None if high is None else max(size, high))
