"""`int`, `len`, `range`, `list`, `min`, `max` and `np.zeros` of symbols in model code.

Python and numpy insist on plain numbers there, so a symbol that passes through them is pinned to its value in the
example. The modules of model code that do this are remembered, and the model is captured again with substitutes among
the globals of those modules, which leave a symbol a symbol."""

from __future__ import annotations

import builtins
import math
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from .core import concerns_graph, is_recording, read_number
from .progressions import Progression
from .rolled import Rows, is_rolling

Use = tuple[str, str]  # a module and the name of a builtin that it calls on symbols
_known: dict[Use, dict[str, Any]] = {}  # with the globals of the module
_lock = threading.Lock()
_installed: dict[Use, int] = {}


def uses() -> frozenset[Use]:
    """The uses that captures of this process came across so far."""
    return frozenset(_known)


def note_use(*names: str, depth: int = 2) -> None:
    """To be called by a replacement of the method behind builtins: the code that called one of them gets a substitute
    next time."""
    frame = sys._getframe(depth)
    scope = frame.f_globals
    module = scope.get("__name__")
    for name in names:
        if isinstance(module, str) and name in frame.f_code.co_names and scope.get(name) is _ORIGINALS.get(name):
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
                    _put_back(_known[use], use[1])


def _put_back(scope: dict[str, Any], name: str) -> None:
    if name in _ORIGINALS:
        scope[name] = _ORIGINALS[name]
    else:
        scope.pop(name, None)  # a builtin


class _LikeBuiltin(type):
    """Whatever is asked of the builtin type besides a conversion gets the answers of the builtin."""

    builtin: type
    convert: Callable[[Any], Any]

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return cls.convert(args[0]) if len(args) == 1 and not kwargs else cls.builtin(*args, **kwargs)

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, cls.builtin)

    def __subclasscheck__(cls, other: type) -> bool:
        return issubclass(other, cls.builtin)

    def __eq__(cls, other: object) -> bool:
        return other is cls or other is cls.builtin

    def __hash__(cls) -> int:
        return hash(cls.builtin)

    def __getattr__(cls, name: str) -> Any:
        return getattr(cls.builtin, name)


def _int_of(value: Any) -> Any:
    if isinstance(value, torch.Tensor) and value.numel() == 1 and is_recording() and concerns_graph(value):
        value = read_number(value)
    if isinstance(value, torch.SymInt):
        return value
    if isinstance(value, torch.SymFloat):
        return math.trunc(value)
    return builtins.int(value)


class _Int(metaclass=_LikeBuiltin):
    builtin = builtins.int
    convert = staticmethod(_int_of)


def _list_of(value: Any) -> Any:
    if isinstance(value, Progression):
        return value
    return Rows(value) if is_rolling(value) else builtins.list(value)


class _List(metaclass=_LikeBuiltin):
    builtin = builtins.list
    convert = staticmethod(_list_of)


def _len_of(value: Any) -> Any:
    if isinstance(value, torch.Tensor) and value.dim() > 0 and is_recording():
        return value.shape[0]
    return value.length if isinstance(value, Progression) else builtins.len(value)


def _range_of(*bounds: Any) -> Any:
    """The numbers, where a bound is a symbol: to go through them pins how many there are, and not the bounds."""
    start, stop, step = (0, bounds[0], 1) if len(bounds) == 1 else (*bounds, 1)[:3]
    if not any(isinstance(bound, torch.SymInt) for bound in bounds):
        return builtins.range(*bounds)
    if isinstance(step, builtins.int) and step > 0:
        return Progression.of_range(start, stop, step, note_use)
    numbers = []
    forward = step > 0
    while start < stop if forward else start > stop:
        numbers.append(start)
        start = start + step
    return numbers


def _chosen(name: str) -> Callable[..., Any]:
    """`min` and `max`: of symbols an expression, and no question which it is."""
    plain, symbolic = getattr(builtins, name), getattr(torch, f"sym_{name}")

    def choose(*values: Any, **options: Any) -> Any:
        numbers = all(isinstance(value, int | torch.SymInt) for value in values)
        if options or len(values) < 2 or not numbers or not any(isinstance(v, torch.SymInt) for v in values):
            return plain(*values, **options)
        result = values[0]
        for value in values[1:]:
            result = symbolic(result, value)
        return result

    return choose


class _Numpy:
    """numpy, with tensors for arrays whose sizes are symbols."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    def zeros(self, shape: Any, dtype: Any = float, **options: Any) -> Any:
        sizes = shape if isinstance(shape, tuple | list) else (shape,)
        if options or not any(isinstance(size, torch.SymInt) for size in sizes):
            return np.zeros(shape, dtype, **options)
        return torch.zeros(tuple(sizes), dtype=torch.from_numpy(np.zeros(0, dtype)).dtype)

    def stack(self, arrays: Any, axis: int = 0, **options: Any) -> Any:
        arrays = builtins.list(arrays)
        if options or not any(isinstance(array, torch.Tensor) for array in arrays):
            return np.stack(arrays, axis, **options)
        return torch.stack(arrays, axis)


# Names that stand for something in a module already, and for what.
_ORIGINALS: dict[str, Any] = {"np": np}
_SUBSTITUTES: dict[str, Callable[..., Any]] = {
    "int": _Int,
    "len": _len_of,
    "range": _range_of,
    "list": _List,
    "min": _chosen("min"),
    "max": _chosen("max"),
    "np": _Numpy(),
}
