"""A capture leaves the model as it was: attributes, buffers, and whatever the forward pass stored on the way."""

from __future__ import annotations

import gc
import operator
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch


@contextmanager
def unchanged(module: torch.nn.Module | None, protect: Callable[[torch.Tensor], None]) -> Iterator[None]:
    """Puts every attribute of every submodule back on exit. Tensors that are plain attributes are handed to `protect`,
    which undoes writes to their memory."""
    if module is None:
        yield
        return
    saved = [(child, dict(vars(child)), _containers(child)) for child in module.modules()]
    for _, attributes, _ in saved:
        for value in attributes.values():
            if isinstance(value, torch.Tensor):
                protect(value)
    try:
        yield
    finally:
        for child, attributes, containers in saved:
            vars(child).clear()
            vars(child).update(attributes)
            for container, contents in containers:
                _refill(container, contents)


_CONTAINERS = frozenset((dict, list))  # exactly: the hooks of a module are OrderedDicts
_HOOKS = ("_forward_hooks", "_forward_pre_hooks")  # a model may install its own when it is first called
_NONE: dict[Any, Any] = {}


def _containers(child: torch.nn.Module) -> list[tuple[Any, Any]]:
    """Lists and dicts held by the module (its buffers among them) with their contents."""
    kept = [(value, value.copy()) for value in vars(child).values() if type(value) in _CONTAINERS]
    return kept + [
        (hooks, dict(hooks) if hooks else _NONE) for hooks in map(vars(child).get, _HOOKS) if hooks is not None
    ]


def _refill(container: Any, contents: Any) -> None:
    if len(container) == len(contents) and all(map(operator.is_, _items(container), _items(contents))):
        return
    container.clear()
    if isinstance(container, dict):
        container.update(contents)
    else:
        container.extend(contents)


def _items(container: Any) -> Iterable[Any]:
    return container.values() if isinstance(container, dict) else container


# Attributes in which models keep what they computed for the size of their last call, and compare with the next.
_OF_LAST_CALL = ("cached_sequence_length", "cached_rotary_positional_embedding")


def forget_sizes(module: torch.nn.Module | None) -> None:
    """Empties what the model keeps from an earlier call; inside `unchanged`, which puts it back."""
    for child in module.modules() if module is not None else ():
        for name in _OF_LAST_CALL:
            if vars(child).get(name) is not None:
                vars(child)[name] = None


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """A capture makes many small objects and few cycles: looking for them would take a tenth of its time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
