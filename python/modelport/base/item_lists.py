"""Results that are lists with one tensor for each item, where how many items there are is open.

A graph has a fixed number of results, so it gives the tensors of all items in one: `[items, ...]` where all have one
size; else `rows`, one item after the other, and `sizes`, a row for each item, of the axes that the rows go through."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping
from typing import Any

import torch
from torch.utils import _pytree as pytree

ROWS, SIZES = "rows", "sizes"


class ItemList:
    """Stands for such a list in a result. It has no attributes that a walk through the result would see."""

    __slots__ = ("kind", "rows", "sizes")

    def __init__(self, kind: type, rows: torch.Tensor, sizes: torch.Tensor | None):
        self.kind, self.rows, self.sizes = kind, rows, sizes

    def parts(self) -> Any:
        """The same as a graph gives it."""
        return self.rows if self.sizes is None else {ROWS: self.rows, SIZES: self.sizes}


@dataclasses.dataclass(frozen=True)
class ItemLists:
    """Where a result has lists of items."""

    spec: pytree.TreeSpec  # the structure of the result, each list one leaf
    kinds: dict[int, tuple[type, bool]]  # by the leaf's place: list or tuple, and whether sizes follow the rows

    def leaves(self, found: list[Any]) -> list[Any]:
        """The leaves of that structure from those that a graph gives."""
        values = iter(found)
        result = []
        for place in range(self.spec.num_leaves):
            value = next(values)
            if place in self.kinds:
                kind, with_sizes = self.kinds[place]
                value = kind(items_of(value, next(values) if with_sizes else None))
            result.append(value)
        return result


def items_of(rows: torch.Tensor, sizes: torch.Tensor | None) -> list[torch.Tensor]:
    """The tensor of each item."""
    if sizes is None:
        return list(rows.unbind(0))
    shapes = sizes.tolist()
    pieces = rows.split([math.prod(shape) for shape in shapes])
    return [piece.reshape(*shape, *rows.shape[1:]) for piece, shape in zip(pieces, shapes, strict=True)]


def as_in_graph(wanted: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
    """What a model gives, by its names, as a graph gives it that has these results: lists of items in one tensor."""
    result = dict(wanted)
    for name in found:
        base = name.removesuffix(f".{ROWS}")
        members = _members(base, wanted)
        if name in wanted or not members:
            continue
        tensors = [result.pop(member) for member in members]
        sizes = found.get(f"{base}.{SIZES}") if base != name else None
        if sizes is None and len({tensor.shape for tensor in tensors}) == 1:
            result[name] = torch.stack(tensors)
        elif sizes is not None and min(tensor.dim() for tensor in tensors) >= sizes.shape[1]:
            lead = sizes.shape[1]
            result[name] = torch.cat([tensor.reshape(-1, *tensor.shape[lead:]) for tensor in tensors])
            result[f"{base}.{SIZES}"] = torch.tensor([tensor.shape[:lead] for tensor in tensors])
    return result


def _members(base: str, wanted: Mapping[str, Any]) -> list[str]:
    names = (f"{base}.{number}" for number in itertools.count())
    return list(itertools.takewhile(lambda name: isinstance(wanted.get(name), torch.Tensor), names))
