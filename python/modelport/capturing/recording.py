"""One run of a model while the recorder watches: its graph, and the model as it was before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import IntEnum
from typing import Any

import torch

from ..base import core
from ..base.errors import ExportError, problem
from ..base.item_lists import ItemList, ItemLists
from ..base.place import model_line
from ..base.structure import Flat, flatten, plain_spec, unflatten
from ..models.locks import while_nobody_builds
from ..models.state import Change, ModelState, Submodules, forget_sizes, state_of
from ..patches.function_caches import forgotten
from ..patches.registry import patched_models
from ..quick_imports import deferred
from ..symbolic.interception import intercepted
from ..symbolic.item_results import collected
from ..symbolic.items import Item
from ..symbolic.unroll import Unroll
from .captured import Captured
from .dynamic import Axes

_SYMBOLS = (torch.SymInt, torch.SymFloat, torch.SymBool)


def record(model: Any, flat: Flat, axes: Axes, session: Any, trial: Trial, *, exporting: bool = True) -> Captured:
    if trial:
        session.set_trial(trial is Trial.COMPARED)
    for symbol in axes.symbols.values():
        session.declare(symbol.name, symbol.hint(flat), symbol.low, symbol.high)
    with _recorded(model, flat, axes, session, exporting) as (given, traced):
        result = _in_parts(given)
        in_graph = [_add_output(session, n, v) for n, v in zip(result.names, result.leaves, strict=True)]
        spec = plain_spec(result.spec)
        left = _left_behind(model, session)
    constants = [None if inside else leaf for inside, leaf in zip(in_graph, result.leaves, strict=True)]
    program = session.finish(_graph_name(model))
    outputs = Flat(result.names, constants, spec, _given(result, flat.names, traced), result.lists)
    captured = Captured(program, flat, outputs, in_graph)
    captured.left = left
    return captured


@contextmanager
def _recorded(model: Any, flat: Flat, axes: Axes, session: Any, exporting: bool) -> Iterator[tuple[Flat, list[Any]]]:
    """What the model gives while the session records, and the inputs that it got; afterwards the model is as it was."""
    leaves = [
        session.add_input(name, leaf, axes.of(name, leaf)) if isinstance(leaf, torch.Tensor) else leaf
        for name, leaf in zip(flat.names, flat.leaves, strict=True)
    ]
    state = state_of(model if isinstance(model, torch.nn.Module) else None)
    _name_weights(session, state.modules)
    rng = torch.get_rng_state()
    classes = {type(child) for _, child in state.modules}
    try:
        with (
            while_nobody_builds(),
            torch.no_grad(),
            state.unchanged(session.protect),
            forgotten(classes),
            intercepted(exporting),
            patched_models(classes),
        ):
            forget_sizes(state.modules)
            session.start()
            try:
                yield flatten(collected(_call(session, model, unflatten(leaves, flat.spec)), axes.join_lists)), leaves
            finally:
                session.stop()
    finally:
        session.restore()
        torch.set_rng_state(rng)


def _in_parts(result: Flat) -> Flat:
    """With lists of items as the graph gives them."""
    found = {place: leaf for place, leaf in enumerate(result.leaves) if isinstance(leaf, ItemList)}
    if not found:
        return result
    leaves = [leaf.parts() if isinstance(leaf, ItemList) else leaf for leaf in result.leaves]
    flat = flatten(unflatten(leaves, result.spec))
    kinds = {place: (leaf.kind, leaf.sizes is not None) for place, leaf in found.items()}
    flat.lists = ItemLists(plain_spec(result.spec), kinds)
    return flat


def zeros_of(model: torch.nn.Module, inputs: Mapping[str, Any]) -> Any:
    """What the model gives for these inputs, with zeros for its values: nothing that depends on a parameter is computed
    but its shape."""
    flat = flatten(dict(inputs))
    try:
        with _recorded(model, flat, Axes(), core.Session(False), exporting=True) as (result, _):
            leaves = result.leaves
            zeros = [torch.zeros(tuple(x.shape), dtype=x.dtype) if isinstance(x, torch.Tensor) else x for x in leaves]
            spec = plain_spec(result.spec)
    except Exception:
        if deferred.load():
            return zeros_of(model, inputs)
        raise
    return unflatten(zeros, spec)


def _call(session: Any, model: Any, kwargs: dict[str, Any]) -> Any:
    positional = [kwargs.pop(name) for name in list(kwargs) if name.startswith("*")]
    try:
        return model(*positional, **kwargs)
    except ExportError:
        raise
    except Exception as error:
        session.take_error()  # raises ours, if the failure began in the recorder
        where = model_line(error)
        raise problem(
            "E0205",
            f"the model failed on these inputs: {type(error).__name__}: {error}",
            "check that the model runs on them: model(**inputs)",
            where=where,
        ) from error


def _given(result: Flat, names: list[str], traced: list[Any]) -> dict[str, str]:
    """Outputs that are tensors of the inputs, such as those of a cache of fixed size, which a model writes into."""
    inputs = {id(leaf): name for name, leaf in zip(names, traced, strict=True) if isinstance(leaf, torch.Tensor)}
    pairs = zip(result.names, result.leaves, strict=True)
    return {name: inputs[id(leaf)] for name, leaf in pairs if id(leaf) in inputs}


def _add_output(session: Any, name: str, leaf: Any) -> bool:
    if isinstance(leaf, Item):
        raise Unroll  # it is in no list of them
    if not isinstance(leaf, (torch.Tensor, *_SYMBOLS)):
        return False
    session.add_output(name, leaf)
    return True


def _name_weights(session: Any, modules: Submodules) -> None:
    for path, child in modules:
        session.name_module(child, path or type(child).__name__)
        prefix = f"{path}." if path else ""
        for name, parameter in child._parameters.items():
            if parameter is not None:
                session.add_weight(prefix + name, parameter, "parameter")
        for name, buffer in child._buffers.items():
            if buffer is not None:
                saved = name not in child._non_persistent_buffers_set
                session.add_weight(prefix + name, buffer, "buffer" if saved else "buffer_not_saved")


def _graph_name(model: Any) -> str:
    if isinstance(model, torch.nn.Module):
        config = getattr(model, "config", None)
        return getattr(config, "model_type", None) or type(model).__name__
    return getattr(model, "__name__", type(model).__name__)


class Trial(IntEnum):
    """A capture at another size, which records no bounds."""

    NONE = 0
    COMPARED = 1  # its graph is compared and forgotten: lines of the model are left out
    KEPT = 2  # its graph may take the place of the first


def _left_behind(model: Any, session: Any) -> list[Change]:
    """What the recorded run changed besides buffers, as plain values; buffers become state of the graph. To be called
    while the session still knows the tensors of the run."""
    state = state_of(model if isinstance(model, torch.nn.Module) else None)
    return [
        change._replace(now=_plain(change.now)) for change in state.changes() if not _is_buffer(state, session, change)
    ]


def _is_buffer(state: ModelState, session: Any, change: Change) -> bool:
    for path, child in state.modules:
        if child._buffers is not change.holder:
            continue
        if isinstance(change.before, torch.Tensor) and isinstance(change.now, torch.Tensor):
            session.replace_buffer(f"{path}.{change.key}" if path else str(change.key), change.now)
            return True
    return False


def _plain(value: Any) -> Any:
    return core.real_tensor(value).detach() if isinstance(value, torch.Tensor) else value
