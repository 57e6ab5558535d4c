"""Models whose weights have no contents in memory yet: whoever is about to use their values says so here first."""

from __future__ import annotations

from typing import Any, Protocol
from weakref import WeakKeyDictionary


class LazyWeights(Protocol):
    def read_because(self, error: Exception) -> None:
        """Tells the user why values are needed, and sees to it that they are there."""


_weights: WeakKeyDictionary[Any, LazyWeights] = WeakKeyDictionary()


def register(model: Any, weights: LazyWeights) -> None:
    _weights[model] = weights


def of(model: Any) -> LazyWeights | None:
    try:
        return _weights.get(model)
    except TypeError:  # a callable that cannot be referred to weakly is no model of ours
        return None


def unregister(model: Any) -> None:
    _weights.pop(model, None)


def may_be_read(model: Any, error: Exception, *, trial: bool) -> bool:
    """To be called before a capture that computes everything, with what made it necessary: the values are there then.

    In a trial at another size the model may fail for good: then its weights are not read to see it fail again."""
    weights = of(model)
    if weights is None:
        return True
    if trial and getattr(error, "code", "") != "E0206":
        return False
    weights.read_because(error)
    return True
