"""Symbols that leave as a text or as the key of a dict, and strides that a model asks for.

`f"proj_{x.shape[1]}"` may be a message that nobody reads, or the name of a layer. Nothing is pinned for the first
reason, so that whoever captures has to know that it happened, and can ask for the second."""

from __future__ import annotations

import dataclasses
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from ..base.core import sym_hint

# Their code writes messages and keeps tables, and tests of ours go through it.
_TRIED_LIBRARIES = frozenset({"modelport", "torch", "transformers"})


@dataclasses.dataclass
class Asked:
    """What code of a model's own asked for past torch, while it was captured."""

    pins: bool = False  # whether a symbol that is shown has to stay as it is
    shown: bool = False  # a symbol, as text or key
    strides: bool = False


class _Here(threading.local):
    def __init__(self) -> None:
        self.asked = Asked()


_here = _Here()


@contextmanager
def noted_questions(*, pinned: bool) -> Iterator[Asked]:
    """Of this thread, while it lasts; with `pinned` a symbol that is shown has to stay as it is."""
    before, _here.asked = _here.asked, Asked(pinned)
    try:
        yield _here.asked
    finally:
        _here.asked = before


def noted_strides(original: Callable[..., Any]) -> Callable[..., Any]:
    """A question how a tensor lies in memory: a graph knows the answer of the example alone."""

    def ask(self: Any, *args: Any, **options: Any) -> Any:
        if _is_asked_by_own_code(sys._getframe(1)):
            _here.asked.strides = True
        return original(self, *args, **options)

    return ask


def show(symbol: Any) -> Any:
    """The number that stands for a symbol; to be called by the method that Python code reaches."""
    number = sym_hint(symbol.node)
    if _is_asked_by_own_code(sys._getframe(2)):
        _here.asked.shown = True
        if _here.asked.pins:
            bool(symbol == number)
    return number


def is_own(module: str) -> bool:
    """Whether the code of a module with this name came with a model, and not with a library that tests go through."""
    return module.partition(".")[0] not in _TRIED_LIBRARIES


def _is_asked_by_own_code(caller: FrameType) -> bool:
    return is_own(str(caller.f_globals.get("__name__", "")))
