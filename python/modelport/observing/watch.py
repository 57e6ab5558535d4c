"""Watching a method of an object: one stand-in for all observers of the method, taken back when the last one leaves."""

from __future__ import annotations

import functools
import inspect
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from ..base.errors import problem

_LOCK = threading.RLock()


class Listener(Protocol):
    def before(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What the call is given; the result is a ticket for `after`, or None if the call is of no interest."""

    def after(self, ticket: Any, result: Any, seconds: float) -> None: ...

    def failed(self, ticket: Any) -> None: ...


@contextmanager
def watched(owner: Any, method_name: str, listener: Listener) -> Iterator[None]:
    """Tells `listener` of every call of the method. Several may listen, and they may leave in any order."""
    if not callable(getattr(owner, method_name, None)):
        names = [name for name in ("forward", "generate", "encode") if callable(getattr(owner, name, None))]
        raise problem(
            "E0313",
            f"{type(owner).__name__} has no method {method_name!r} to observe",
            f"method_name={names[0]!r}" if names else "pass the object whose method is called",
        )
    with _LOCK:
        stand_in = vars(owner).get(method_name)
        if not hasattr(stand_in, "listeners"):
            stand_in = _stand_in(getattr(owner, method_name), vars(owner).get(method_name))
            setattr(owner, method_name, stand_in)
        stand_in.listeners.append(listener)
    try:
        yield
    finally:
        with _LOCK:
            stand_in.listeners.remove(listener)
            if not stand_in.listeners and vars(owner).get(method_name) is stand_in:
                _take_back(owner, method_name, stand_in)


def unwatched(owner: Any, method_name: str) -> Callable[..., Any]:
    """The method itself, also while it is watched."""
    method = getattr(owner, method_name)
    return getattr(method, "watched_method", method)


def _take_back(owner: Any, method_name: str, stand_in: Any) -> None:
    if stand_in.own_attribute is None:
        delattr(owner, method_name)  # the method of the class shows again
    else:
        setattr(owner, method_name, stand_in.own_attribute)


def _stand_in(method: Callable[..., Any], own_attribute: Any) -> Any:
    listeners: list[Listener] = []

    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        with _LOCK:
            present = list(listeners)
        tickets = [(listener, listener.before(args, kwargs)) for listener in present]
        start = time.perf_counter()
        try:
            result = method(*args, **kwargs)
        except BaseException:
            for listener, ticket in tickets:
                listener.failed(ticket)
            raise
        seconds = time.perf_counter() - start
        for listener, ticket in tickets:
            listener.after(ticket, result, seconds)
        return result

    # GenerationMixin asks the signature of forward which inputs to prepare.
    call.__signature__ = inspect.signature(method)  # type: ignore[attr-defined]
    call.listeners = listeners  # type: ignore[attr-defined]
    call.watched_method = method  # type: ignore[attr-defined]
    call.own_attribute = own_attribute  # type: ignore[attr-defined]
    return call
