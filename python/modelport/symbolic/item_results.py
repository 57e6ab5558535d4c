"""Lists of items that are results of the model."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils import _pytree as pytree

from ..base.item_lists import ItemList
from .items import Item, of_pieces, of_rows
from .ragged import Packed, is_ragged
from .rolled import Pieces, Rows, was_used
from .unroll import Unroll


def collected(result: Any, may_join: bool) -> Any:
    """The result with an `ItemList` for each list that a loop over items filled, or that a split made. Where these are
    not to be in one tensor, their number is pinned."""
    if not was_used():
        return result
    if not may_join and any(map(_is_list_of_items, pytree.tree_leaves(result, is_leaf=_is_list_of_items))):
        raise Unroll
    return pytree.tree_map(_as_list, result, is_leaf=_is_list_of_items)


def _is_list_of_items(value: Any) -> bool:
    """A list of one item stands for all. Values show where the model really gives one."""
    filled = type(value) in (list, tuple) and len(value) == 1 and isinstance(value[0], Item)
    return filled or isinstance(value, Pieces | Rows)


def _as_list(value: Any) -> Any:
    if not _is_list_of_items(value):
        return value
    if isinstance(value, Pieces):
        return _item_list(tuple, of_pieces(value.whole, value.lengths, value.axis).packed)
    if isinstance(value, Rows):
        return _item_list(list, of_rows(value.tensor).packed)
    return _item_list(type(value), value[0].packed)


def _item_list(kind: type, packed: Packed) -> ItemList:
    whole = packed.uniform()
    if whole is not None:
        return ItemList(kind, whole, None)
    sizes = [
        (size if is_ragged(size) else torch.full((packed.count,), size, device=packed.data.device)).to(torch.int64)
        for size in packed.sizes[: packed.lead]
    ]
    return ItemList(kind, packed.data, torch.stack(sizes, dim=1))
