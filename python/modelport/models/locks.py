"""What captures in several threads cannot share: a model, and the settings of the process while one is built.

Captures of different models run side by side. Two that have a module or a configuration in common come one after the
other, because a capture changes attributes, weights and configuration of its model until it is done."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from .state import configs_of, submodules

_changed = threading.Condition()
_in_use: dict[int, int] = {}  # modules and configurations by id, with the thread that has them
_capturing: dict[int, int] = {}  # threads, with how many captures they are in
_building: list[int] = []  # the thread that builds a model, once for each level
_waiting_to_build = 0


@contextmanager
def only_user(model: Any) -> Iterator[None]:
    """Waits until no other thread captures this model, or another with modules or a configuration of it."""
    me, shared = threading.get_ident(), _shared_parts(model)
    with _changed:
        _changed.wait_for(lambda: all(_in_use[part] == me for part in shared & _in_use.keys()))
        mine = shared - _in_use.keys()
        _in_use.update(dict.fromkeys(mine, me))
    try:
        yield
    finally:
        with _changed:
            for part in mine:
                del _in_use[part]
            _changed.notify_all()


def _shared_parts(model: Any) -> set[int]:
    if not isinstance(model, torch.nn.Module):
        return set()
    modules = submodules(model)
    return {id(part) for part in (*(module for _, module in modules), *configs_of(modules))}


@contextmanager
def while_nobody_builds() -> Iterator[None]:
    """For a capture: a model that is built meanwhile would change torch's default dtype under it."""
    me = threading.get_ident()
    with _changed:
        _changed.wait_for(lambda: me in _capturing or _building[:1] == [me] or not (_building or _waiting_to_build))
        _capturing[me] = _capturing.get(me, 0) + 1
    try:
        yield
    finally:
        with _changed:
            _capturing[me] -= 1
            if _capturing[me] == 0:
                del _capturing[me]
            _changed.notify_all()


@contextmanager
def building_alone() -> Iterator[None]:
    """For whoever builds a model as transformers does, which sets torch's default dtype and replaces its initialisers
    in the whole process. Waits for the captures of other threads, unless it is itself part of a capture."""
    global _waiting_to_build
    me = threading.get_ident()
    with _changed:
        _waiting_to_build += 1
        _changed.wait_for(lambda: _building[:1] in ([], [me]) and (me in _capturing or not _capturing))
        _waiting_to_build -= 1
        _building.append(me)
    try:
        yield
    finally:
        with _changed:
            _building.pop()
            _changed.notify_all()
