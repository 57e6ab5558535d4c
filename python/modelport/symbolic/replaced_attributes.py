"""Attributes that are replaced while somebody needs it: put there for the first, taken away after the last.

Captures in several threads need the same replacements and end in any order, so replacements are counted, and what was
there before is kept once, not by each capture. A replacement either does nothing special outside of a capture
(`replaced`), or a function stands there that asks which thread calls it (`replaced_here`)."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from types import CellType
from typing import Any

Factory = Callable[[Any], Any]  # gets what is there and gives what takes its place
Replacement = tuple[Any, str, Factory]  # of an attribute of an owner
ABSENT = object()  # the owner has no such attribute of its own
_OF_A_CACHE = ("cache_clear", "cache_info", "cache_parameters")  # what code may ask of a function with lru_cache
_lock = threading.RLock()


@contextmanager
def replaced(replacements: Iterable[Replacement]) -> Iterator[None]:
    """Replaces attributes in all threads. An owner is a module, a class, or the dict of a module's globals."""
    entered: list[tuple[_Place, Factory]] = []
    try:
        with _lock:
            for owner, name, factory in replacements:
                place = _place(owner, name)
                place.add(factory)
                entered.append((place, factory))
        yield
    finally:
        with _lock:
            for place, factory in reversed(entered):
                place.remove(factory)


class Replacements:
    """Several that are always needed together: they are counted as one."""

    def __init__(self, replacements: list[Replacement]):
        self._all = replacements
        self._users = 0

    @contextmanager
    def installed(self) -> Iterator[None]:
        with _lock:
            if self._users == 0:
                self._scope = replaced(self._all)
                self._scope.__enter__()
            self._users += 1
        try:
            yield
        finally:
            with _lock:
                self._users -= 1
                if self._users == 0:
                    self._scope.__exit__(None, None, None)


@contextmanager
def replaced_here(owner: Any, name: str, factory: Factory) -> Iterator[None]:
    """Replaces a function or method in this thread; what is neither (a flag, a class) in all. An owner may also be the
    cell of a closure, whose `cell_contents` is replaced."""
    with _lock:
        place = _place(owner, name)
        layer = place.by_thread if place.holds_function() else factory
        place.add(layer)
    try:
        with place.by_thread.using(factory) if layer is place.by_thread else nullcontext():
            yield
    finally:
        with _lock:
            place.remove(layer)


def original(owner: Any, name: str) -> Any:
    """What stands there when nobody replaces it, or ABSENT."""
    with _lock:
        place = _places.get((id(owner), name))
        return _own(owner, name) if place is None else place.before


class _Place:
    """An attribute, what was there before it was replaced, and by how many it is replaced how."""

    def __init__(self, owner: Any, name: str):
        self.owner, self.name = owner, name
        self.before = _own(owner, name)
        self._original = _inherited(owner, name) if self.before is ABSENT else self.before
        self._value = self._original
        self._counts: dict[Factory, int] = {}

    @functools.cached_property
    def by_thread(self) -> _ByThread:
        return _ByThread(self.owner)

    def add(self, factory: Factory) -> None:
        if factory not in self._counts:
            self._value = factory(self._value)
            _put(self.owner, self.name, self._value)
            _places[id(self.owner), self.name] = self
        self._counts[factory] = self._counts.get(factory, 0) + 1

    def remove(self, factory: Factory) -> None:
        self._counts[factory] -= 1
        if self._counts[factory]:
            return
        del self._counts[factory]
        self._value = self._original
        for other in self._counts:
            self._value = other(self._value)
        _put(self.owner, self.name, self._value if self._counts else self.before)
        if not self._counts:
            del _places[id(self.owner), self.name]

    def holds_function(self) -> bool:
        value = self._original
        return isinstance(value, staticmethod | classmethod) or (callable(value) and not isinstance(value, type))


_places: dict[tuple[int, str], _Place] = {}  # what is replaced now


def _place(owner: Any, name: str) -> _Place:
    return _places.get((id(owner), name)) or _Place(owner, name)


def _own(owner: Any, name: str) -> Any:
    """As it stands there: perhaps a staticmethod, which getattr would unwrap."""
    if isinstance(owner, CellType):
        try:
            return owner.cell_contents
        except ValueError:  # not set yet
            return ABSENT
    return (owner if isinstance(owner, dict) else vars(owner)).get(name, ABSENT)


def _inherited(owner: Any, name: str) -> Any:
    if isinstance(owner, dict):
        return ABSENT
    if not isinstance(owner, type):
        return getattr(owner, name, ABSENT)
    return next((vars(base)[name] for base in owner.__mro__[1:] if name in vars(base)), ABSENT)


def _put(owner: Any, name: str, value: Any) -> None:
    if isinstance(owner, dict):
        if value is ABSENT:
            del owner[name]
        else:
            owner[name] = value
    elif value is ABSENT:
        delattr(owner, name)
    else:
        setattr(owner, name, value)


class _ByThread:
    """Makes the function that calls what its thread has in place of the original, or the original."""

    def __init__(self, owner: Any):
        self._owner = owner
        self._here = threading.local()

    def __call__(self, value: Any) -> Any:
        bound = isinstance(value, staticmethod | classmethod)
        function = self._function = value.__get__(None, self._owner) if bound else value
        here = self._here

        def of_this_thread(*args: Any, **kwargs: Any) -> Any:
            stack = getattr(here, "stack", None)
            return (stack[-1] if stack else function)(*args, **kwargs)

        functools.update_wrapper(of_this_thread, function)
        for name in _OF_A_CACHE:
            if hasattr(function, name):
                setattr(of_this_thread, name, getattr(function, name))
        return staticmethod(of_this_thread) if bound else of_this_thread

    @contextmanager
    def using(self, factory: Factory) -> Iterator[None]:
        stack = vars(self._here).setdefault("stack", [])
        made = factory(stack[-1] if stack else self._function)
        made = made.__func__ if isinstance(made, staticmethod) else made
        stack.append(made)
        try:
            yield
        finally:  # by identity: scopes of one thread need not be nested either
            del stack[max(number for number, other in enumerate(stack) if other is made)]
