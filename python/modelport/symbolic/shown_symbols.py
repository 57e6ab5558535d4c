"""Symbols that leave as a text or as the key of a dict, and strides that a model asks for.

`f"proj_{x.shape[1]}"` may be a message that nobody reads, or the name of a layer. Nothing is pinned for the first
reason, so that whoever captures has to know that it happened, and can ask for the second."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from ..base.core import sym_hint

# Their code writes messages and keeps tables, and tests of ours go through it.
TRIED_LIBRARIES = frozenset({"modelport", "torch", "transformers"})


class _Here(threading.local):
    shown = False  # in this thread, to code of the model's own
    pins = False
    strides = False  # were asked for, by such code


_here = _Here()


@contextmanager
def symbols_shown(*, pinned: bool) -> Iterator[None]:
    """Notes in this thread whether a symbol is shown; with `pinned` it is a condition, too, that it stays as it is."""
    before = _here.shown, _here.pins, _here.strides
    _here.shown, _here.pins, _here.strides = False, pinned, False
    try:
        yield
    finally:
        _here.shown, _here.pins, _here.strides = before


def were_shown() -> bool:
    return _here.shown


def strides_were_asked() -> bool:
    return _here.strides


def noted_strides(original: Callable[..., Any]) -> Callable[..., Any]:
    """A question how a tensor lies in memory: a graph knows the answer of the example alone."""

    def ask(self: Any, *args: Any, **options: Any) -> Any:
        _here.strides = _here.strides or _is_own(sys._getframe(1))
        return original(self, *args, **options)

    return ask


def show(symbol: Any) -> Any:
    """The number that stands for a symbol; to be called by the method that Python code reaches."""
    number = sym_hint(symbol.node)
    if _is_own(sys._getframe(2)):
        _here.shown = True
        if _here.pins:
            bool(symbol == number)
    return number


def _is_own(caller: FrameType) -> bool:
    return str(caller.f_globals.get("__name__", "")).partition(".")[0] not in TRIED_LIBRARIES
