"""Functions of torch on pictures and points in them, of items of a loop (`items`)."""

from __future__ import annotations

import itertools
from typing import Any

import torch

from .item_rules import rule_for
from .items import RULES, Item, Rule, of_one_size
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
        return of_one_size(data, item.packed.count)

    function: Any = getattr(torch.nn.functional, name)
    return rule


RULES.update({name: _in_one_batch(name, axes) for name, axes in _OF_SPACE.items()})


@rule_for("conv2d")
def _conv2d(
    item: Item,
    weight: torch.Tensor,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Item:
    """Of pictures of any size, where the filter goes through them patch by patch: a product with each patch."""
    if not any(map(is_ragged, item.packed.sizes)):
        return _in_one_batch("conv2d", 2)(item, weight, bias, stride, padding, dilation, groups)
    side = weight.shape[2:]
    by_patches = _pair(stride) == tuple(side) and _pair(padding) == (0, 0) and _pair(dilation) == (1, 1)
    if not by_patches or groups != 1 or item.dim() != 4:
        raise Unroll
    batch, channels, height, width = item.packed.sizes
    down, across = side
    cut = item.packed.reshaped((batch, channels, height // down, down, width // across, across))
    patches = cut.permuted((0, 2, 4, 1, 3, 5))
    rows = patches.reshaped((*patches.sizes[:3], channels * down * across))
    data = torch.nn.functional.linear(rows.data, weight.flatten(1), bias)
    found = Packed(data, (*rows.sizes[:3], weight.shape[0]), rows.lead, rows.count)
    return Item(found.permuted((0, 3, 1, 2)))


def _pair(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, tuple | list) else (value, value)


@rule_for("interpolate")
def _interpolate(
    picture: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: Any = None,
    antialias: bool = False,
) -> Item:
    """One picture, such as a table of positions, in the size of each item."""
    plain = isinstance(picture, torch.Tensor) and picture.dim() == 4 and mode == "bilinear"
    if not plain or align_corners or antialias or picture.shape[0] != 1 or not all(isinstance(x, Item) for x in size):
        raise Unroll
    sides = [side.packed.data for side in size]
    item, rank = places(sides[0] * sides[1])
    width = sides[1][item]
    found = _resized(picture[0].permute(1, 2, 0), [rank // width, rank % width], [side[item] for side in sides])
    channels = picture.shape[1]
    whole = Packed(found, (*sides, channels), 2, size[0].packed.count).permuted((2, 0, 1))
    return Item(whole.reshaped((1, channels, *sides)))


def _resized(table: torch.Tensor, at: list[torch.Tensor], sides: list[torch.Tensor]) -> torch.Tensor:
    """`[height, width, channels]` at places of a picture with other sides, between its own: as torch does it."""
    first, part = [], []
    for place, side, own in zip(at, sides, table.shape, strict=False):
        source = ((place + 0.5) * (own / side.to(torch.float32)) - 0.5).clamp(min=0)
        first.append(source.floor().long().clamp(max=own - 1))
        part.append((source - first[-1]).clamp(max=1)[:, None].to(table.dtype))
    (top, left), (down, across) = first, part
    below, right = (top + 1).clamp(max=table.shape[0] - 1), (left + 1).clamp(max=table.shape[1] - 1)
    upper = table[top, left] * (1 - across) + table[top, right] * across
    lower = table[below, left] * (1 - across) + table[below, right] * across
    return upper * (1 - down) + lower * down


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
        return of_one_size(data, points.count)
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
