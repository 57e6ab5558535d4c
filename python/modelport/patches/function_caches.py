"""Results that model code remembers from call to call (`functools.lru_cache`). A tensor of a capture that stayed there
would turn up in later calls, long after its capture is over."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from ..symbolic.replaced_attributes import original, replaced_here

Place = tuple[Any, str]  # an owner and the name of the attribute that holds a function with a cache


@contextmanager
def forgotten(classes: set[type]) -> Iterator[None]:
    """While it lasts, the functions of this model remember only what they gave since, and in this thread alone. What
    they remember for others stays as it is."""
    with ExitStack() as stack:
        places = [place for cls in classes for place in _places(cls)]
        for owner, name in {(id(owner), name): (owner, name) for owner, name in places}.values():
            stack.enter_context(replaced_here(owner, name, _fresh))
        yield


def _fresh(function: Any) -> Callable[..., Any]:
    return functools.lru_cache(**function.cache_parameters())(function.__wrapped__)


@functools.cache
def _places(cls: type) -> tuple[Place, ...]:
    """In the class itself, and among the functions of its module."""
    scope = sys.modules.get(cls.__module__)
    bases = [base for base in cls.__mro__ if not base.__module__.startswith(("torch.", "builtins"))]
    own = [(base, name) for base in bases for name in list(vars(base))]
    functions = [(scope, name) for name in list(vars(scope))] if scope is not None else []
    found = [place for owner, name in own for place in _caches(owner, name, original(owner, name))]
    for owner, name in functions:
        value = original(owner, name)
        if getattr(value, "__module__", None) == cls.__module__:
            found += _caches(owner, name, value)
    return tuple(found)


def _caches(owner: Any, name: str, value: Any) -> Iterator[Place]:
    """The attribute itself or, where its function is wrapped once more, what the wrapper calls."""
    function = getattr(value, "__func__", value)  # of a staticmethod
    if _remembers(function):
        yield owner, name
    for cell in getattr(function, "__closure__", None) or ():
        if _remembers(original(cell, "cell_contents")):
            yield cell, "cell_contents"


def _remembers(function: Any) -> bool:
    return not isinstance(function, type) and hasattr(function, "cache_parameters") and hasattr(function, "__wrapped__")
