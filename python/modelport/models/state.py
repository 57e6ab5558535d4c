"""A capture leaves the model as it was: attributes, buffers, and whatever the forward pass stored on the way."""

from __future__ import annotations

import gc
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from operator import is_
from typing import Any, NamedTuple

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


def configs_of(modules: Submodules) -> list[Any]:
    """The configurations of a model and its parts, each once."""
    found = [vars(module).get("config") for _, module in modules]
    return list({id(c): c for c in found if isinstance(getattr(c, "__dict__", None), dict)}.values())


class Change(NamedTuple):
    """Something that a run of the model left behind."""

    holder: Any  # a dict or a list
    key: Any
    before: Any
    now: Any

    def apply(self) -> None:
        """As the run left it."""
        if self.now is _ABSENT:
            self.holder.pop(self.key, None)
        else:
            self.holder[self.key] = self.now


class _Nothing:
    pass


_ABSENT = object()  # there is no such attribute


def is_empty(before: Any) -> bool:
    """Whether there was nothing in the place of a change."""
    return before is None or before is _ABSENT


class ModelState:
    """What a model looked like: every attribute of every submodule and of their configurations, and the contents of the
    lists and dicts in submodules."""

    def __init__(self, module: torch.nn.Module | None):
        self.module = module
        self.modules = submodules(module)
        self._dicts: list[tuple[dict[Any, Any], dict[Any, Any]]] = []
        self._lists: list[tuple[list[Any], list[Any]]] = []
        self._tensors: list[torch.Tensor] = []
        for _, child in self.modules:
            attributes = vars(child)
            self._dicts.append((attributes, attributes.copy()))
            for value in attributes.values():
                kind = type(value)
                if kind in _PLAIN:
                    continue
                if kind is dict or kind is OrderedDict:
                    self._dicts.append((value, value.copy() if value else _EMPTY))
                elif kind is list:
                    self._lists.append((value, value.copy()))
                elif issubclass(kind, torch.Tensor):
                    self._tensors.append(value)
        for config in configs_of(self.modules):
            self._dicts.append((vars(config), vars(config).copy()))

    def changes(self) -> list[Change]:
        """What is not as it was; to be asked inside `unchanged`."""
        found = []
        for now, before in self._dicts:
            if len(now) == len(before) and all(map(is_, now.values(), before.values())):
                continue
            for key in now.keys() | before.keys():
                value, old = now.get(key, _ABSENT), before.get(key, _ABSENT)
                if value is not old and not (type(value) in _PLAIN and type(value) is type(old) and value == old):
                    found.append(Change(now, key, old, value))
        for items, contents in self._lists:
            if len(items) != len(contents) or not all(map(is_, items, contents)):
                found.append(Change(items, slice(None), contents, items.copy()))
        return found

    def name_of(self, change: Change) -> str:
        """The attribute as the model's code would have it."""
        for path, child in self.modules:
            attributes = vars(child)
            place = ".".join(filter(None, (path, str(change.key))))
            if attributes is change.holder or child._buffers is change.holder:
                return place
            for name, value in attributes.items():
                if value is change.holder or vars(value if name == "config" else _Nothing) is change.holder:
                    return ".".join(filter(None, (path, name)))
        return str(change.key)

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Puts everything back after a run of the model that nobody records: contents of buffers, too."""
        buffers = [buffer for _, child in self.modules for buffer in child._buffers.values() if buffer is not None]
        contents = [(tensor, tensor.clone()) for tensor in (*buffers, *self._tensors) if not tensor.is_meta]
        try:
            with self.unchanged(lambda _tensor: None):
                yield
        finally:
            with torch.no_grad():
                for tensor, before in contents:
                    if not torch.equal(tensor, before):
                        tensor.copy_(before)

    @contextmanager
    def unchanged(self, protect: Callable[[torch.Tensor], None]) -> Iterator[None]:
        """Puts everything back on exit. Tensors that are plain attributes are handed to `protect`, which undoes writes
        to their memory."""
        for tensor in self._tensors:
            protect(tensor)
        try:
            yield
        finally:
            for now, before in self._dicts:
                same = len(now) == len(before) and (not now or all(map(is_, now.values(), before.values())))
                if not same:
                    now.clear()
                    now.update(before)
            for items, contents in self._lists:
                if len(items) != len(contents) or not all(map(is_, items, contents)):
                    items[:] = contents


_EMPTY: dict[Any, Any] = {}
# Most attributes of a module: nothing to look into, nothing that could be written to.
_PLAIN = frozenset((bool, int, float, str, type(None), set, tuple))
_current: ContextVar[ModelState | None] = ContextVar("state of the model that is being captured", default=None)


@contextmanager
def remembered(module: torch.nn.Module | None) -> Iterator[None]:
    """While it lasts, the state of the model is looked at once, however many captures it takes."""
    token = _current.set(ModelState(module))
    try:
        yield
    finally:
        _current.reset(token)


def state_of(module: torch.nn.Module | None) -> ModelState:
    state = _current.get()
    return state if state is not None and state.module is module else ModelState(module)


# Attributes in which models keep what they computed for the size of their last call, and compare with the next.
_OF_LAST_CALL = ("cached_sequence_length", "cached_rotary_positional_embedding")


def forget_sizes(modules: Submodules) -> None:
    """Empties what the model keeps from an earlier call; inside `unchanged`, which puts it back."""
    for _, child in modules:
        for name in _OF_LAST_CALL:
            if vars(child).get(name) is not None:
                vars(child)[name] = None


class _Kept:
    """Something of the process that captures change: the last of several threads leaves it as the first found it."""

    def __init__(self, take: Callable[[], Any], put_back: Callable[[Any], None]):
        self._take, self._put_back = take, put_back
        self._lock = threading.Lock()
        self._users = 0

    @contextmanager
    def __call__(self) -> Iterator[None]:
        with self._lock:
            if self._users == 0:
                self._before = self._take()
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if self._users == 0:
                    self._put_back(self._before)


def _collect_no_garbage() -> bool:
    was_on = gc.isenabled()
    gc.disable()
    return was_on


# A capture makes many small objects and few cycles: looking for garbage would take a tenth of its time.
no_garbage_collection = _Kept(_collect_no_garbage, lambda was_on: gc.enable() if was_on else None)
# A model that draws random numbers leaves torch's generator as it was.
random_state_kept = _Kept(torch.get_rng_state, torch.set_rng_state)
