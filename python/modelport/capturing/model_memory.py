"""What a model remembers from call to call.

A buffer that the model writes to, or puts another tensor in place of, is state of the graph: it goes in and out.
Anything else that a run leaves in the model (a number that counts calls, a tensor in an attribute) is not part of a
graph, so that a model whose next call depends on it is refused."""

from __future__ import annotations

import copy
from typing import Any

import torch

from ..base.errors import problem
from ..base.structure import unflatten
from ..models.state import Change, is_empty, remembered, state_of
from .attempts import capture_once
from .captured import Captured
from .comparison import not_wrong, right_at


def _next_call_is_the_same(model: Any, captured: Captured, axes: Any) -> bool:
    try:
        again = capture_once(model, captured.inputs, axes)
    except Exception:  # the second call may meet tensors of the first that have no values
        again = None
    if again is not None and captured.program.same_as(again.program):
        return True
    # The same operators with other numbers: that the values agree is chance (a zero among the factors).
    only_numbers = again is not None and _operators(again) == _operators(captured)
    return not only_numbers and _gives_the_same(model, captured)


def _gives_the_same(model: Any, captured: Captured) -> bool:
    """For data in another order too: what follows from the first data is right for those."""
    inputs = captured.inputs
    return right_at(model, captured, inputs, {}) and not_wrong(model, captured, [(lambda: inputs, {}, True)])


def refuse_memory(model: Any, captured: Captured, axes: Any) -> None:
    """Raises where the next call gives other values because of what the first one left behind."""
    state = state_of(model)
    if any(p.is_meta for _, child in state.modules for p in child._parameters.values() if p is not None):
        return  # a model without values: its calls cannot be compared
    names = [state.name_of(change) for change in captured.left]
    with state.kept():
        _apply(captured.left)
        with remembered(model):  # several runs, all of them after the first one
            if _next_call_is_the_same(model, captured, axes):
                return
    with state.kept():
        if _keeps_results(model, captured):
            return
    raise problem(
        "E0205",
        f"the model keeps {', '.join(sorted(set(names))[:4])} from call to call, and gives other values for it; "
        "a graph has no such memory",
        "keep it in a buffer (register_buffer), which becomes state of the graph",
        "pass it as an input and return it as an output",
    )


def _keeps_results(model: Any, captured: Captured) -> bool:
    """Whether it keeps tensors in places that were empty, so as not to compute them again, and its next calls give the
    values of the graph all the same, for data in another order too. In a capture such tensors may have no values, so
    that it is a real call that leaves them here."""
    if not all(isinstance(change.now, torch.Tensor) and is_empty(change.before) for change in captured.left):
        return False
    inputs = captured.inputs
    with torch.no_grad():
        model(**copy.deepcopy(unflatten(inputs.leaves, inputs.spec)))
    with remembered(model):
        return _gives_the_same(model, captured)


def _operators(captured: Captured) -> list[str]:
    return [node["op"] for node in captured.program.nodes()]


def _apply(changes: list[Change]) -> None:
    for change in changes:
        change.apply()
