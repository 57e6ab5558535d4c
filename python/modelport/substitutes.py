"""`int(...)` and `len(...)` of symbols in model code.

Python insists that these give plain numbers, so a symbol that passes through them is pinned to its value in the example.
The modules of model code that do this are remembered, and the model is captured again with substitutes among the globals
of those modules, which leave a symbol a symbol."""

from __future__ import annotations

import builtins
import math
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from ._modelport import concerns_graph, is_recording, read_number

Use = tuple[str, str]  # a module and the name of a builtin that it calls on symbols
_known: dict[Use, dict[str, Any]] = {}  # with the globals of the module
_lock = threading.Lock()
_installed: dict[Use, int] = {}


def uses() -> frozenset[Use]:
    """The uses that captures of this process came across so far."""
    return frozenset(_known)


def note_use(name: str) -> None:
    """To be called by a replacement of the method behind a builtin: the code that called the builtin gets a substitute
    next time."""
    scope = sys._getframe(2).f_globals
    module = scope.get("__name__")
    if isinstance(module, str) and name not in scope:
        _known[module, name] = scope


@contextmanager
def installed(wanted: frozenset[Use]) -> Iterator[None]:
    with _lock:
        for use in wanted:
            _installed[use] = _installed.get(use, 0) + 1
            _known[use][use[1]] = _SUBSTITUTES[use[1]]
    try:
        yield
    finally:
        with _lock:
            for use in wanted:
                _installed[use] -= 1
                if _installed[use] == 0:
                    _known[use].pop(use[1], None)


class _LikeInt(type):
    """Whatever is asked of `int` besides a conversion gets the answers of the builtin."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return _int_of(args[0]) if len(args) == 1 and not kwargs else builtins.int(*args, **kwargs)

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, builtins.int)

    def __subclasscheck__(cls, other: type) -> bool:
        return issubclass(other, builtins.int)

    def __eq__(cls, other: object) -> bool:
        return other is cls or other is builtins.int

    def __hash__(cls) -> int:
        return hash(builtins.int)

    def __getattr__(cls, name: str) -> Any:
        return getattr(builtins.int, name)


class _Int(metaclass=_LikeInt):
    pass


def _int_of(value: Any) -> Any:
    if isinstance(value, torch.Tensor) and value.numel() == 1 and is_recording() and concerns_graph(value):
        value = read_number(value)
    if isinstance(value, torch.SymInt):
        return value
    if isinstance(value, torch.SymFloat):
        return math.trunc(value)
    return builtins.int(value)


def _len_of(value: Any) -> Any:
    if isinstance(value, torch.Tensor) and value.dim() > 0 and is_recording():
        return value.shape[0]
    return builtins.len(value)


_SUBSTITUTES: dict[str, Callable[..., Any]] = {"int": _Int, "len": _len_of}
