"""Tensors that are indexed by what stands for items: `x[i]`, `x[i, :length]`, read and written."""

from __future__ import annotations

from typing import Any

import torch

from .items import Each, Item, of_pieces, of_rows
from .ragged import Packed, places, require_same
from .unroll import Unroll


def concerns_items(key: Any) -> bool:
    """Whether an index of a tensor stands for items."""
    parts = key if isinstance(key, tuple) else (key,)
    return any(
        isinstance(part, Each | Item) or (isinstance(part, slice) and isinstance(part.stop, Item)) for part in parts
    )


def taken_from(tensor: torch.Tensor, key: Any) -> Any:
    """`tensor[key]` with an index that stands for items."""
    parts = key if isinstance(key, tuple) else (key,)
    at = next(i for i, part in enumerate(parts) if concerns_items(part))
    if any(part is Ellipsis for part in parts[:at]):
        raise Unroll
    axis = sum(part is not None for part in parts[:at])
    part, rest = parts[at], (*parts[:at], *parts[at + 1 :])
    if isinstance(part, Each):
        require_same(part.count, tensor.shape[axis])
        return of_rows(tensor, axis)[rest]
    if isinstance(part, Item):
        if rest or part.dtype == torch.bool:
            raise Unroll
        packed = part.packed
        sizes = (*packed.sizes, *tensor.shape[1:])
        return Item(Packed(tensor[packed.data], sizes, packed.lead, packed.count))
    return _next_pieces(tensor, axis, part)[(*parts[:at], slice(None), *parts[at + 1 :])]


def put_into(tensor: torch.Tensor, key: Any, value: Any) -> None:
    """`tensor[i] = value` for each item: the whole tensor is written, or a part that all items have (`tensor[i, :2]`).
    `tensor[i, :length] = value`: the first places of each row."""
    first, *rest = key if isinstance(key, tuple) else (key,)
    if not isinstance(first, Each):
        raise Unroll
    if len(rest) == 1 and _is_start(rest[0]):
        if isinstance(value, Item) and value.dim() != tensor.dim() - 1:
            raise Unroll
        item, place = places(rest[0].stop.packed.data)
        tensor[item, place] = value.packed.with_lead(1).data if isinstance(value, Item) else value
        return
    rows = value.packed.uniform() if isinstance(value, Item) else value
    if rows is None or concerns_items(tuple(rest)):
        raise Unroll
    if isinstance(value, Item):  # sizes that an item has not are those of one element
        missing = tensor[(slice(None), *rest)].dim() - rows.dim()
        if missing < 0:
            raise Unroll
        rows = rows.reshape(rows.shape[0], *[1] * missing, *rows.shape[1:])
    tensor[(slice(None), *rest)] = rows


def _is_start(part: Any) -> bool:
    return isinstance(part, slice) and part.start in (None, 0) and part.step is None and isinstance(part.stop, Item)


def _next_pieces(tensor: torch.Tensor, axis: int, part: slice) -> Item:
    """A part of a tensor that all items share, of a length for each: loops go through it piece by piece, and begin at 0
    in the only round that there is. Values show whether it is so."""
    if isinstance(part.start, Item) or part.start not in (None, 0):
        raise Unroll
    return of_pieces(tensor, part.stop.packed.data, axis)
