"""`int`, `len`, `range`, `list`, `sum`, `min`, `max` and `np.zeros` of symbols in model code.

Python and numpy insist on plain numbers there, so a symbol that passes through them is pinned to its value in the
example. The modules of model code that do this are remembered, and the model is captured again with substitutes among
the globals of those modules, which leave a symbol a symbol."""

from __future__ import annotations

import builtins
import functools
import math
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import CodeType
from typing import Any

import numpy as np
import torch

from ..base.core import concerns_graph, is_recording, read_number
from .items import Each, Item, Number
from .progressions import Copies, Progression
from .ragged import require_same
from .replaced_attributes import ABSENT, Factory, original, replaced
from .rolled import Lengths, Rows, is_rolling

Use = tuple[int, str]  # the globals of a module by their id, and the name of a builtin that it calls on symbols
Scopes = dict[Use, dict[str, Any]]  # uses with the globals themselves


class _Here(threading.local):
    """Of this thread: what its capture came across so far, and for which uses substitutes act."""

    found: Scopes | None = None
    items = False  # whether its loops over items run once
    active: frozenset[Use] = frozenset()


_here = _Here()


@contextmanager
def noted_uses() -> Iterator[None]:
    """What is found while it lasts belongs to one capture, with its trials at other sizes: a capture that began with
    what others had found could give another graph than one in a process of its own."""
    if _here.found is not None:
        yield
        return
    _here.found, _here.items = {}, False
    try:
        yield
    finally:
        _here.found = None


def uses() -> frozenset[Use]:
    """The uses that this capture came across so far."""
    return frozenset(_here.found or ())


def note_items(run_once: bool) -> None:
    """Of a capture that is kept: at other sizes, loops over items run as in it."""
    _here.items = run_once


def items_run_once() -> bool:
    return _here.items


def forget_uses(unwanted: frozenset[Use]) -> None:
    """For uses with whose substitutes the model does not run."""
    for use in unwanted:
        (_here.found or {}).pop(use, None)


def note_use(*names: str, outside: int = 2) -> None:
    """To be called by a replacement of the method behind builtins: the code that called one of them, so many frames
    outside, gets a substitute next time."""
    frame: Any = sys._getframe(outside)
    if frame.f_code in _DOING_NOTHING:
        frame = frame.f_back
    scope = frame.f_globals
    if _here.found is None or scope.get("__name__", "").startswith("modelport."):
        return
    for name in names:
        if name in frame.f_code.co_names and original(scope, name) is _ORIGINALS.get(name, ABSENT):
            _here.found[id(scope), name] = scope


@contextmanager
def installed(wanted: frozenset[Use]) -> Iterator[None]:
    """Puts substitutes where they are wanted. They act in this thread."""
    found = _here.found or {}
    outside, _here.active = _here.active, wanted
    try:
        with replaced([(found[use], use[1], _substitute(use)) for use in wanted]):
            yield
    finally:
        _here.active = outside


def _int_of(value: Any) -> Any:
    if isinstance(value, torch.Tensor) and value.numel() == 1 and is_recording() and concerns_graph(value):
        value = read_number(value)
    if isinstance(value, Item):
        return value.to(torch.int64)
    if isinstance(value, torch.SymInt):
        return value
    if isinstance(value, torch.SymFloat):
        return math.trunc(value)
    return builtins.int(value)


_LIKE: dict[type, type] = {
    torch.SymInt: builtins.int,
    torch.SymFloat: builtins.float,
    torch.SymBool: builtins.bool,
}


def _is_instance(value: Any, kinds: Any) -> bool:
    """To model code a symbol is a number and an item a tensor, or a number where it gave itself for one."""
    if isinstance(value, kinds):
        return True
    likeness = _likeness(value)
    return likeness is not None and issubclass(likeness, kinds)


def _likeness(value: Any) -> type | None:
    if isinstance(value, Number):
        return builtins.float if value.dtype.is_floating_point else builtins.int
    return torch.Tensor if isinstance(value, Item) else _LIKE.get(type(value))


def answering_what_symbols_are(scopes: Iterable[dict[str, Any]]) -> AbstractContextManager[None]:
    """`isinstance` in these globals takes a symbol for a number. Outside of a capture there are none."""
    wanted = [scope for scope in scopes if original(scope, "isinstance") is ABSENT]
    return replaced([(scope, "isinstance", _answering) for scope in wanted])


def _answering(_original: Any) -> Callable[..., bool]:
    return _is_instance


def _list_of(value: Any) -> Any:
    if isinstance(value, Progression):
        return value
    return Rows(value) if is_rolling(value) else builtins.list(value)


def _len_of(value: Any) -> Any:
    if isinstance(value, torch.Tensor) and value.dim() > 0 and is_recording():
        return value.shape[0]
    if isinstance(value, Item):
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


def _enumerated(values: Any, start: int = 0) -> Iterator[tuple[Any, Any]]:
    """An item that stands for all has all numbers; several of each, if it is one of what `zip` gives."""
    of_each = values.items if isinstance(values, Copies) else None
    for number, value in builtins.enumerate(values, start):
        parts = value if isinstance(value, tuple) else (value,)
        count = next((part.packed.count for part in parts if isinstance(part, Item)), of_each)
        yield (number if count is None else Each(count)), value


def _zipped(*values: Any, strict: bool = False) -> Iterator[tuple[Any, ...]]:
    """Items that a loop goes through together are as many, also where it makes plain numbers of some."""
    for parts in builtins.zip(*values, strict=strict):
        counts = [part.packed.count for part in parts if isinstance(part, Item)]
        if counts:
            require_same(*counts)
        yield parts


def _over_items(values: Any, name: str) -> Any:
    """The sum, the largest or the smallest of numbers that items have, in a list that stands for all of them."""
    numbers = values.tensor if isinstance(values, Lengths) else values[0].packed.data
    return read_number(getattr(numbers, name)())


def _are_of_items(values: Any) -> bool:
    if isinstance(values, builtins.list):
        return len(values) == 1 and isinstance(values[0], Item) and values[0].dim() == 0
    return isinstance(values, Lengths)


def _sum_of(values: Any, *start: Any) -> Any:
    values = values if isinstance(values, Lengths) else builtins.list(values)
    return _over_items(values, "sum") if _are_of_items(values) and not start else builtins.sum(values, *start)


def _chosen(name: str) -> Callable[..., Any]:
    """`min` and `max`: of symbols an expression, and no question which it is."""
    plain, symbolic = getattr(builtins, name), getattr(torch, f"sym_{name}")

    def choose(*values: Any, **options: Any) -> Any:
        if len(values) == 1 and not options:
            among = values[0] if isinstance(values[0], Lengths) else builtins.list(values[0])
            return _over_items(among, name) if _are_of_items(among) else plain(among)
        numbers = all(isinstance(value, int | torch.SymInt) for value in values)
        if options or len(values) < 2 or not numbers or not any(isinstance(v, torch.SymInt) for v in values):
            return plain(*values, **options)
        result = values[0]
        for value in values[1:]:
            result = symbolic(result, value)
        return result

    return choose


def _zeros(shape: Any, dtype: Any = float, **options: Any) -> Any:
    sizes = shape if isinstance(shape, tuple | list) else (shape,)
    if options or not any(isinstance(size, torch.SymInt) for size in sizes):
        return np.zeros(shape, dtype, **options)
    return torch.zeros(tuple(sizes), dtype=torch.from_numpy(np.zeros(0, dtype)).dtype)


def _stack(arrays: Any, axis: int = 0, **options: Any) -> Any:
    arrays = builtins.list(arrays)
    if options or not any(isinstance(array, torch.Tensor) for array in arrays):
        return np.stack(arrays, axis, **options)
    return torch.stack(arrays, axis)


class _LikeBuiltin(type):
    """Whatever is asked of the builtin type besides a conversion gets the answers of the builtin."""

    builtin: type
    convert: Callable[[Any], Any]
    use: Use

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls.use not in _here.active:
            return cls.builtin(*args, **kwargs)
        return _converted(cls, args, kwargs)

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, cls.builtin)

    def __subclasscheck__(cls, other: type) -> bool:
        return issubclass(other, cls.builtin)

    def __eq__(cls, other: object) -> bool:
        return other is cls.builtin or (isinstance(other, _LikeBuiltin) and other.builtin is cls.builtin)

    def __hash__(cls) -> int:
        return hash(cls.builtin)

    def __getattr__(cls, name: str) -> Any:
        return getattr(cls.builtin, name)


def _converted(cls: _LikeBuiltin, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return cls.convert(args[0]) if len(args) == 1 and not kwargs else cls.builtin(*args, **kwargs)


class _Numpy:
    """numpy, with tensors for arrays whose sizes are symbols."""

    def __init__(self, use: Use):
        self.zeros, self.stack = _either(use, np.zeros, _zeros), _either(use, np.stack, _stack)

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


def _either(use: Use, plain: Callable[..., Any], substitute: Callable[..., Any]) -> Callable[..., Any]:
    """The substitute in a thread whose capture wants it."""

    def call(*args: Any, **kwargs: Any) -> Any:
        if use not in _here.active:
            return plain(*args, **kwargs)
        return substitute(*args, **kwargs)

    _DOING_NOTHING.add(call.__code__)
    return call


@functools.cache
def _substitute(use: Use) -> Factory:
    """One for each use, so that it acts in the threads that want it there."""
    name = use[1]
    made: Any
    if name in _TYPES:
        builtin, convert = _TYPES[name]
        made = _LikeBuiltin(name, (), {"builtin": builtin, "convert": staticmethod(convert), "use": use})
    else:
        made = _Numpy(use) if name == "np" else _either(use, getattr(builtins, name), _FUNCTIONS[name])
    return lambda _original: made


# Code of ours that stands between a builtin and the code that called it.
_DOING_NOTHING: set[CodeType] = {_LikeBuiltin.__call__.__code__}
# Names that stand for something in a module already, and for what.
_ORIGINALS: dict[str, Any] = {"np": np}
_TYPES: dict[str, tuple[type, Callable[[Any], Any]]] = {"int": (int, _int_of), "list": (list, _list_of)}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "isinstance": _is_instance,
    "len": _len_of,
    "range": _range_of,
    "enumerate": _enumerated,
    "zip": _zipped,
    "sum": _sum_of,
    "min": _chosen("min"),
    "max": _chosen("max"),
}
Item.asked_what_it_is = staticmethod(lambda: note_use("isinstance", outside=3))
