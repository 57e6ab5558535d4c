"""Which step of a graph went wrong first, where of each value it is known whether the model has it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import torch


class Step(NamedTuple):
    takes: Sequence[str]
    gives: Sequence[str]


def wrong_values(
    steps: Sequence[Step], right: Mapping[str, bool], tells: Callable[[str], bool], ends: Iterable[str]
) -> list[tuple[int, str]]:
    """Steps with their values, in order. A value that is none of the model's may be a step between two of them, as a
    product before its bias: then a value that follows from it is right again. A value that is not the model's, from
    which nothing right follows, and on which one of `ends` depends, is wrong.

    `tells` says whether a value, being right, shows that its sources are: not if it would be the same whatever they
    are."""
    wrong = _from_which_nothing_right_follows(steps, right, tells)
    wanted = _sources(steps, ends)
    return [(i, name) for i, step in enumerate(steps) for name in step.gives if name in wrong and name in wanted]


def _from_which_nothing_right_follows(
    steps: Sequence[Step], right: Mapping[str, bool], tells: Callable[[str], bool]
) -> set[str]:
    wrong: set[str] = set()
    excused: set[str] = set()
    for step in reversed(steps):
        if any(name in excused or (right.get(name, False) and tells(name)) for name in step.gives):
            excused.update(name for name in step.takes if not right.get(name, True))
        wrong.update(name for name in step.gives if name not in excused and not right.get(name, True))
    return wrong


def _sources(steps: Sequence[Step], ends: Iterable[str]) -> set[str]:
    found = set(ends)
    for step in reversed(steps):
        if found.intersection(step.gives):
            found.update(step.takes)
    return found


def is_index(tensor: torch.Tensor) -> bool:
    """Sizes, axes and indices: graphs compute them in their own way. Where one is wrong, what it leads to is found."""
    return not tensor.is_floating_point() and not tensor.is_complex() and tensor.dtype != torch.bool


def is_telling(tensor: torch.Tensor) -> bool:
    """A mask, or numbers that differ from each other."""
    if is_index(tensor) or tensor.numel() < 2:
        return False
    return tensor.dtype == torch.bool or bool((tensor != tensor.flatten()[0]).any())
