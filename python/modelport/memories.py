"""Results that model code remembers from call to call (`functools.lru_cache`). A tensor of a capture that stayed there
would turn up in later calls, long after its capture is over."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def forgotten(classes: set[type]) -> Iterator[None]:
    """Nothing is remembered from before, and nothing afterwards."""
    clearers = [clear for cls in classes for clear in _clearers(cls)]
    for clear in clearers:
        clear()
    try:
        yield
    finally:
        for clear in clearers:
            clear()


@functools.cache
def _clearers(cls: type) -> tuple[Callable[[], None], ...]:
    """Of what the class itself has, and of the functions in its module."""
    scope = vars(sys.modules.get(cls.__module__, cls)).values()
    bases = [base for base in cls.__mro__ if not base.__module__.startswith(("torch.", "builtins"))]
    own = [value for base in bases for value in vars(base).values()]
    functions = [value for value in scope if getattr(value, "__module__", None) == cls.__module__]
    return tuple(cache.cache_clear for value in (*own, *functions) for cache in _caches(value))


def _caches(value: Any) -> Iterator[Any]:
    """The function itself or, where it is wrapped once more, what the wrapper calls."""
    function = getattr(value, "__func__", value)  # of a staticmethod
    if hasattr(function, "cache_clear"):
        yield function
    for cell in getattr(function, "__closure__", None) or ():
        try:
            inside = cell.cell_contents
        except ValueError:  # not set yet
            continue
        if not isinstance(inside, type) and hasattr(inside, "cache_clear"):
            yield inside
