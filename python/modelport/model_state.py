"""A capture leaves the model as it was: attributes, buffers, and whatever the forward pass stored on the way."""

from __future__ import annotations

import functools
import gc
import operator
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

Submodules = list[tuple[str, torch.nn.Module]]


def submodules(module: torch.nn.Module | None) -> Submodules:
    """What `named_modules()` gives, without a generator inside a generator for each level: a capture looks at all
    modules of a model several times."""
    if module is None:
        return []
    found: Submodules = []
    seen: set[int] = set()
    waiting: Submodules = [("", module)]
    while waiting:
        path, current = waiting.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        found.append((path, current))
        prefix = f"{path}." if path else ""
        children = [(prefix + name, child) for name, child in current._modules.items() if child is not None]
        waiting.extend(reversed(children))
    return found


@contextmanager
def unchanged(modules: Submodules, protect: Callable[[torch.Tensor], None]) -> Iterator[None]:
    """Puts every attribute of every submodule back on exit. Tensors that are plain attributes are handed to `protect`,
    which undoes writes to their memory."""
    saved = [(child, dict(vars(child)), _containers(child)) for _, child in modules]
    for _, attributes, _ in saved:
        for value in attributes.values():
            if _is_tensor(type(value)):
                protect(value)
    try:
        yield
    finally:
        for child, attributes, containers in saved:
            _refill(vars(child), attributes)
            for container, contents in containers:
                _refill(container, contents)


@functools.cache
def _is_tensor(kind: type) -> bool:
    """By type, and remembered: torch's own isinstance takes ten times as long, and models have many attributes."""
    return issubclass(kind, torch.Tensor)


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


def forget_sizes(modules: Submodules) -> None:
    """Empties what the model keeps from an earlier call; inside `unchanged`, which puts it back."""
    for _, child in modules:
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
