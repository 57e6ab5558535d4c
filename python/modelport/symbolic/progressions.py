"""`range(n)`, lists made of it, and `[x] * n`, where n is a symbol.

As long as model code asks for its ends, its length and parts of it, how many numbers there are stays open. Code that
goes through them pins it, unless what it does to one is done to all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ..base.core import is_recording
from .items import Each
from .rolled import note_loop, takes_all_items
from .unroll import Unroll


@dataclass(frozen=True)
class Progression:
    """Some plain numbers, and then `count` more: start, start + step, …"""

    first: tuple[Any, ...]
    start: Any
    step: int
    count: Any
    note_use: Callable[..., None]

    @classmethod
    def of_range(cls, start: Any, stop: Any, step: int, note_use: Callable[..., None]) -> Progression:
        return cls((), start, step, torch.sym_max((stop - start + step - 1) // step, 0), note_use)

    @property
    def length(self) -> Any:
        return self.count + len(self.first)

    def __len__(self) -> int:
        self.note_use("len")
        return int(self.length)

    def __iter__(self) -> Iterator[Any]:
        from_zero = not self.first and self.step == 1 and isinstance(self.start, int) and self.start == 0
        if from_zero and takes_all_items(self.count):
            yield Each(self.count)
            return
        note_loop()
        self.note_use("list")
        yield from self.first
        place = 0
        while place < self.count:
            yield self.start + place * self.step
            place += 1

    def __radd__(self, others: list[Any]) -> Progression:
        return Progression((*others, *self.first), self.start, self.step, self.count, self.note_use)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return self._part(place)
        if place < 0 and -place <= self.count:
            return self.start + (self.count + place) * self.step
        at = place if place >= 0 else self.length + place
        if 0 <= at < len(self.first):
            return self.first[at]
        if not 0 <= at < self.length:
            raise IndexError("list index out of range")
        return self.start + (at - len(self.first)) * self.step

    def _part(self, wanted: slice) -> Any:
        begin, every = wanted.start or 0, wanted.step or 1
        left_out = 0 if wanted.stop is None else -wanted.stop
        if begin < 0 or every < 1 or left_out < 0:
            return list(self)[wanted]
        ahead = max(begin - len(self.first), 0)
        count = self.count - ahead - left_out
        if count < 0:  # the part ends among the plain numbers
            return list(self)[wanted]
        first = self.first[begin:]
        skipped = -len(first) % every
        start = self.start + (ahead + skipped) * self.step
        rest = torch.sym_max((count - skipped + every - 1) // every, 0)
        return Progression(first[::every], start, self.step * every, rest, self.note_use)


class Copies(Sequence[Any]):
    """`[x] * n` in a loop that runs once for all items: each has the same."""

    def __init__(self, value: Any, count: Any):
        self.value, self.items = value, count

    def __len__(self) -> int:
        raise Unroll

    def __getitem__(self, index: Any) -> Any:
        if not isinstance(index, Each):
            raise Unroll
        return self.value

    def __iter__(self) -> Iterator[Any]:
        yield self.value


def repeated_list(note_use: Callable[..., None]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`*` of a list and a symbol, which Python would ask for its number."""

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def multiply(self: Any, other: Any) -> Any:
            if type(other) is list and len(other) == 1 and is_recording():
                if takes_all_items(self):
                    return Copies(other[0], self)
                note_loop()
                note_use("enumerate")
            return original(self, other)

        return multiply

    return make
