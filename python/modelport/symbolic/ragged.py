"""Tensors of different sizes, one for each item of a loop, that lie one after the other in one tensor.

Sizes are as of one item: a number where all items have it, a tensor with a number for each where they differ."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

import torch

from .unroll import Unroll

Size = Any  # int, SymInt, or a tensor [items]
Places = list[torch.Tensor]  # of rows, along each axis


def places(lengths: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """For tokens that lie one item after the other: the item of each, and its place in the item."""
    items = torch.arange(lengths.shape[0], device=lengths.device)
    item = torch.repeat_interleave(items, lengths)
    return item, torch.arange(item.shape[0], device=lengths.device) - begins(lengths)[item]


def begins(lengths: torch.Tensor) -> torch.Tensor:
    """Where each item begins."""
    return lengths.cumsum(0) - lengths


def require_same(*counts: Any) -> None:
    """Loops that go through tensors together take as many items as the shorter one has: here they have the same."""
    if any(count is not counts[0] and count != counts[0] for count in counts[1:]):
        raise Unroll


def is_ragged(size: Size) -> bool:
    return isinstance(size, torch.Tensor)


def product(sizes: Iterable[Size]) -> Size:
    result: Size = 1
    for size in sizes:
        result = size if isinstance(result, int) and result == 1 else result * size
    return result


def lead_of(sizes: tuple[Size, ...]) -> int:
    """How many axes there are up to the last that differs between items."""
    return max((axis + 1 for axis, size in enumerate(sizes) if is_ragged(size)), default=0)


@dataclasses.dataclass(frozen=True)
class Packed:
    """The elements of all items: `data` has a row for each place in the first `lead` axes of each item, in the item's
    order, one item after the other; the axes after those, which have one size for all items, follow as they are."""

    data: torch.Tensor
    sizes: tuple[Size, ...]
    lead: int
    count: Any  # of items

    def __post_init__(self) -> None:
        require_same(self.count, *(size.shape[0] for size in self.sizes if is_ragged(size)))

    def tight(self) -> Packed:
        """With no more axes in its rows than have to be."""
        return self if self.lead == lead_of(self.sizes) else self.reshaped(self.sizes)

    def rows(self) -> torch.Tensor:
        """How many rows each item has."""
        rows = product(self.sizes[: self.lead])
        if is_ragged(rows):
            return rows
        return torch.full((self.count,), rows, dtype=torch.int64, device=self.data.device)

    def with_lead(self, lead: int) -> Packed:
        """The same with more axes in its rows."""
        if lead == self.lead:
            return self
        return dataclasses.replace(self, data=self.data.reshape(-1, *self.sizes[lead:]), lead=lead)

    def uniform(self) -> torch.Tensor | None:
        """[items, sizes], where all items have the same sizes."""
        if any(map(is_ragged, self.sizes)):
            return None
        return self.data if self.lead == 0 else self.data.reshape(self.count, *self.sizes)

    def reshaped(self, sizes: tuple[Size, ...]) -> Packed:
        """Other sizes for the same elements in the same order."""
        lead = lead_of(sizes)
        first = self.count if lead == 0 else -1
        return Packed(self.data.reshape(first, *sizes[lead:]), sizes, lead, self.count)

    def permuted(self, axes: tuple[int, ...]) -> Packed:
        moved = [axis for axis, source in enumerate(axes) if axis != source]
        if not moved:
            return self
        sizes = tuple(self.sizes[axis] for axis in axes)
        if min(moved) >= self.lead:
            order = [0, *(axis - self.lead + 1 for axis in axes[self.lead :])]
            return Packed(self.data.permute(order), sizes, self.lead, self.count)
        lead = max(self.lead, max(moved) + 1)
        return self.gathered(sizes, lead, lambda found, _: [found[axes.index(axis)] for axis in range(lead)])

    def part(self, axis: int, start: Any, length: Size) -> Packed:
        """From `start` on along an axis, both possibly different for each item."""
        sizes = (*self.sizes[:axis], length, *self.sizes[axis + 1 :])

        def source(found: Places, item: torch.Tensor) -> Places:
            first = _of(start, item)
            return [place + first if at == axis else place for at, place in enumerate(found)]

        return self.gathered(sizes, max(self.lead, axis + 1), source)

    def spread(self, sizes: tuple[Size, ...], lead: int) -> Packed:
        """With these sizes, at least in the first `lead` axes: where there is one element, it is repeated."""
        own = (*[1] * (len(sizes) - len(self.sizes)), *self.sizes)
        here = self if len(own) == len(self.sizes) else self.reshaped(own)
        alone = [_is_one(size) and not _is_one(wanted) for size, wanted in zip(own, sizes, strict=True)]
        if here.lead <= lead and not any(alone[:lead]):
            return here.with_lead(lead)
        lead = max(lead, here.lead)
        wanted = (*sizes[:lead], *own[lead:])
        return here.gathered(
            wanted, lead, lambda found, _: [0 * p if one else p for p, one in zip(found, alone, strict=False)]
        )

    def gathered(self, sizes: tuple[Size, ...], lead: int, source: Callable[[Places, torch.Tensor], Places]) -> Packed:
        """Of other sizes: `source` says where the element at some places comes from."""
        here = self.with_lead(lead)
        item, rank = places(dataclasses.replace(here, sizes=sizes).rows())
        found = source(_places(rank, item, sizes[:lead]), item)
        return Packed(here.at(item, found), sizes, lead, self.count)

    def at(self, item: torch.Tensor, found: Places) -> torch.Tensor:
        """The rows at these places of these items."""
        return self.data[begins(self.rows())[item] + _rank(found, item, self.sizes)]


def repeated(tensor: torch.Tensor, count: Any) -> Packed:
    """The same tensor for each item."""
    return Packed(tensor.expand(count, *tensor.shape), tuple(tensor.shape), 0, count)


def broadcast(items: list[Packed]) -> tuple[Size, ...]:
    """The sizes of what is computed of items element by element."""
    require_same(*(item.count for item in items))
    rank = max(len(item.sizes) for item in items)
    rows = [(*[1] * (rank - len(item.sizes)), *item.sizes) for item in items]
    return tuple(next((size for size in sizes if not _is_one(size)), 1) for sizes in zip(*rows, strict=True))


def _is_one(size: Size) -> bool:
    return isinstance(size, int) and size == 1


def joined_within(parts: list[Packed], axis: int) -> Packed:
    """Each item of the first with the same item of the others, along an axis."""
    require_same(*(part.count for part in parts))
    lead = max(part.lead for part in parts)
    parts = [part.with_lead(lead) for part in parts]
    sizes = list(parts[0].sizes)
    for part in parts[1:]:
        sizes[axis] = sizes[axis] + part.sizes[axis]
    if axis >= lead:
        data = torch.cat([part.data for part in parts], dim=axis - lead + 1)
        return Packed(data, tuple(sizes), lead, parts[0].count)
    item, rank = places(dataclasses.replace(parts[0], sizes=tuple(sizes)).rows())
    at = _places(rank, item, tuple(sizes[:lead]))
    index, passed, before = torch.zeros_like(rank), torch.zeros_like(rank), 0
    for part in parts:
        inside = [place - passed if number == axis else place for number, place in enumerate(at)]
        found = before + begins(part.rows())[item] + _rank(inside, item, part.sizes)
        index = torch.where(at[axis] >= passed, found, index)
        passed = passed + _of(part.sizes[axis], item)
        before = before + part.data.shape[0]
    return Packed(torch.cat([part.data for part in parts])[index], tuple(sizes), lead, parts[0].count)


def _of(size: Size, item: torch.Tensor) -> Any:
    return size[item] if is_ragged(size) else size


def _places(rank: torch.Tensor, item: torch.Tensor, sizes: tuple[Size, ...]) -> Places:
    """Where a row lies along each axis, by its rank in its item."""
    found = []
    for size in reversed(sizes[1:]):
        along = _of(size, item)
        found.append(rank % along)
        rank = rank // along
    return [rank, *reversed(found)]


def _rank(found: Places, item: torch.Tensor, sizes: tuple[Size, ...]) -> torch.Tensor:
    rank = found[0]
    for place, size in zip(found[1:], sizes[1:], strict=False):
        rank = rank * _of(size, item) + place
    return rank
