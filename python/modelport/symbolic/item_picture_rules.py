"""Functions of torch on pictures and points in them, of items of a loop (`items`)."""

from __future__ import annotations

import itertools
from typing import Any

import torch

from .item_rules import rule_for
from .items import RULES, Item, Rule
from .ragged import Packed, is_ragged, places
from .unroll import Unroll

# How many axes of space functions of a batch have; before them are channels, and before those the batch, if any.
_OF_SPACE = {
    f"{name}{axes}d": axes
    for axes in (1, 2, 3)
    for name in ("conv", "conv_transpose", "max_pool", "avg_pool", "adaptive_avg_pool", "adaptive_max_pool")
}


def _in_one_batch(name: str, axes: int) -> Rule:
    """Pictures of one size: items are rows of the batch."""

    def rule(item: Any, *args: Any, **kwargs: Any) -> Item:
        whole = item.packed.uniform() if isinstance(item, Item) else None
        if whole is None or any(isinstance(x, Item) for x in (*args, *kwargs.values())):
            raise Unroll
        batched = item.dim() == axes + 2
        data: torch.Tensor = function(whole.flatten(0, 1) if batched else whole, *args, **kwargs)
        data = data.reshape(item.packed.count, item.packed.sizes[0], *data.shape[1:]) if batched else data
        return Item(Packed(data, tuple(data.shape[1:]), 0, item.packed.count))

    function: Any = getattr(torch.nn.functional, name)
    return rule


RULES.update({name: _in_one_batch(name, axes) for name, axes in _OF_SPACE.items()})


@rule_for("nonzero")
def _nonzero(item: Item, *, as_tuple: bool = False) -> Any:
    whole = item.packed.uniform()
    if whole is None or item.dim() == 0:
        raise Unroll
    found = whole.nonzero()
    of_item = torch.zeros(item.packed.count, dtype=torch.int64, device=found.device)
    lengths = of_item.index_add(0, found[:, 0], torch.ones_like(found[:, 0]))
    rows = Item(Packed(found[:, 1:], (lengths, item.dim()), 1, item.packed.count))
    return tuple(rows[:, axis] for axis in range(item.dim())) if as_tuple else rows


@rule_for("grid_sample")
def _grid_sample(
    pictures: Item,
    grid: Item,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Item:
    """At points of each picture, as many as it has."""
    whole, points = pictures.packed.uniform(), grid.packed
    all_points = points.uniform()
    if whole is not None and all_points is not None:
        data = torch.nn.functional.grid_sample(
            whole.flatten(0, 1), all_points.flatten(0, 1), mode, padding_mode, align_corners
        )
        data = data.reshape(points.count, pictures.packed.sizes[0], *data.shape[1:])
        return Item(Packed(data, tuple(data.shape[1:]), 0, points.count))
    plain = mode == "bilinear" and padding_mode == "zeros" and grid.dim() == 4 and points.sizes[:2] == (1, 1)
    if whole is None or not plain or pictures.packed.sizes[0] != 1 or not is_ragged(points.sizes[2]):
        raise Unroll
    item, _ = places(points.rows())
    values = _between_pixels(whole[:, 0], item, points.data, bool(align_corners))
    channels = values.shape[1]
    found = Packed(values, (points.sizes[2], channels), 1, points.count).permuted((1, 0))
    return Item(found.reshaped((1, channels, 1, points.sizes[2])))


def _between_pixels(
    pictures: torch.Tensor, item: torch.Tensor, points: torch.Tensor, align_corners: bool
) -> torch.Tensor:
    """The values of `[items, channels, height, width]` at `[points, 2]` from -1 to 1, x first; zero outside."""
    sizes = (pictures.shape[3], pictures.shape[2])
    at = [
        (points[:, axis] + 1) * ((size - 1) / 2) if align_corners else ((points[:, axis] + 1) * size - 1) / 2
        for axis, size in enumerate(sizes)
    ]
    total: Any = 0
    for steps in itertools.product((0, 1), repeat=2):
        corner = [place.floor() + step for place, step in zip(at, steps, strict=True)]
        inside = [(place >= 0) & (place < size) for place, size in zip(corner, sizes, strict=True)]
        weights = [1 - (place - pixel).abs() for place, pixel in zip(at, corner, strict=True)]
        x, y = (place.clamp(0, size - 1).long() for place, size in zip(corner, sizes, strict=True))
        total = total + pictures[item, :, y, x] * (weights[0] * weights[1] * (inside[0] & inside[1]))[:, None]
    return total
