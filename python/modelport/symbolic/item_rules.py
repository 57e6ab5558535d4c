"""Functions of torch that are no matter of single elements, of items of a loop (`items`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ..base.core import read_number
from .items import RULES, Item, Rule, number_of, of_one_size
from .ragged import Packed, Places, Size, is_ragged, joined_within, lead_of, places, product, repeated
from .unroll import Unroll


def rule_for(*names: str) -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, rule))
        return rule

    return register


def _axis(item: Item, dim: int, more: int = 0) -> int:
    return dim % (item.dim() + more)


def _data_axes(packed: Packed, dims: Any) -> list[int]:
    """Where axes of an item are in its data."""
    wanted = [dim % len(packed.sizes) for dim in (dims if _many(dims) else [dims])]
    if any(dim < packed.lead for dim in wanted):
        raise Unroll
    return [dim - packed.lead + 1 for dim in wanted]


def with_data(packed: Packed, data: torch.Tensor) -> Item:
    return Item(Packed(data, (*packed.sizes[: packed.lead], *data.shape[1:]), packed.lead, packed.count))


def _filled(name: str) -> Rule:
    return lambda item, *args, **kwargs: with_data(item.packed, getattr(torch, name)(item.packed.data, *args, **kwargs))


for _name in ("zeros_like", "ones_like", "full_like", "empty_like"):
    RULES[_name] = _filled(_name)


# --- of the last axes -------------------------------------------------------------------------------------------------


def _of_last_axes(function: Callable[..., Any]) -> Rule:
    """Products with weights and norms: whatever comes before the last axes is rows to them."""

    def rule(item: Any, *args: Any, **kwargs: Any) -> Item:
        others = (*args, *kwargs.values())
        if not isinstance(item, Item) or any(isinstance(x, Item) for x in others) or item.packed.lead == item.dim():
            raise Unroll
        return with_data(item.packed, function(item.packed.data, *args, **kwargs))

    return rule


for _function in (torch.nn.functional.linear, torch.nn.functional.layer_norm, torch.nn.functional.rms_norm):
    RULES[_function.__name__] = _of_last_axes(_function)


@rule_for("matmul")
def _matmul(left: Any, right: Any) -> Item:
    if isinstance(right, Item):
        both = left.packed.uniform() if isinstance(left, Item) else left, right.packed.uniform()
        if both[0] is None or both[1] is None or right.dim() < 2:
            raise Unroll
        data = torch.matmul(*both)
        return of_one_size(data, right.packed.count)
    if right.dim() != 2:
        raise Unroll
    return _of_last_axes(torch.matmul)(left, right)


@rule_for("bucketize")
def _bucketize(values: Any, boundaries: torch.Tensor, **options: Any) -> Item:
    return with_data(values.packed, torch.bucketize(values.packed.data, boundaries, **options))


@rule_for("embedding")
def _embedding(indices: Any, weight: torch.Tensor, *args: Any, **kwargs: Any) -> Item:
    packed = indices.packed
    data = torch.nn.functional.embedding(packed.data, weight, *args, **kwargs)
    return with_data(packed, data)


@rule_for("scaled_dot_product_attention")
def _attention(*tensors: Any, **options: Any) -> Item:
    """Of items with the same sizes: they are one more axis of a batch."""
    whole = [x.packed.uniform() if isinstance(x, Item) else x for x in tensors]
    if any(x is None for x in whole[:3]) or any(isinstance(x, Item) for x in options.values()):
        raise Unroll
    data = torch.nn.functional.scaled_dot_product_attention(*whole, **options)
    return of_one_size(data, tensors[0].packed.count)


# --- along axes -------------------------------------------------------------------------------------------------------


def _along(name: str) -> Rule:
    def rule(item: Item, dim: Any, *args: Any, **kwargs: Any) -> Any:
        kwargs.pop("_stacklevel", None)  # of torch's own warnings
        if not _many(dim) and _axis(item, dim) < item.packed.lead:
            return _turned(rule, item, _axis(item, dim), *args, **kwargs)
        axes = _data_axes(item.packed, dim)
        data = getattr(torch, name)(item.packed.data, axes if _many(dim) else axes[0], *args, **kwargs)
        return with_data(item.packed, data)

    return rule


for _name in ("softmax", "log_softmax", "cumsum", "amax", "amin", "argmax", "argmin", "flip", "prod", "any", "all"):
    RULES[_name] = _along(_name)


def _turned(rule: Rule, item: Item, axis: int, *args: Any, **kwargs: Any) -> Item:
    """Along an axis that comes before one with a size for each item, and has one size for all."""
    if is_ragged(item.packed.sizes[axis]):
        raise Unroll
    order = [other for other in range(item.dim()) if other != axis]
    result: Item = rule(_permute(item, *order, axis), -1, *args, **kwargs)
    if result.dim() < item.dim():
        return result
    return _permute(result, *sorted(range(item.dim()), key=[*order, axis].__getitem__))


def _total(name: str) -> Rule:
    """Over axes of the data, or over all rows of each item."""

    def rule(item: Item, dim: Any = None, keepdim: bool = False, **options: Any) -> Item:
        packed = item.packed
        dims = sorted(_axis(item, d) for d in (range(item.dim()) if dim is None else dim if _many(dim) else [dim]))
        if all(d >= packed.lead for d in dims):
            axes = [d - packed.lead + 1 for d in dims]
            return with_data(packed, getattr(torch, name)(packed.data, axes, keepdim, **options))
        if dims != list(range(packed.lead)) or keepdim or options:
            raise Unroll
        rows = packed.rows()
        zeros = torch.zeros((packed.count, *packed.sizes[packed.lead :]), dtype=packed.data.dtype)
        data = zeros.index_add(0, places(rows)[0], packed.data)
        if name == "mean":
            data = data / rows.reshape(-1, *[1] * (data.dim() - 1)).to(data.dtype)
        return Item(Packed(data, packed.sizes[packed.lead :], 0, packed.count))

    return rule


def _many(dim: Any) -> bool:
    return isinstance(dim, list | tuple)


RULES["sum"], RULES["mean"] = _total("sum"), _total("mean")


@rule_for("normalize")
def _normalize(item: Item, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Any = None) -> Item:
    if _axis(item, dim) < item.packed.lead:
        return _turned(lambda turned, last: _normalize(turned, p, last, eps), item, _axis(item, dim))
    data = torch.nn.functional.normalize(item.packed.data, p, _data_axes(item.packed, dim)[0], eps)
    return with_data(item.packed, data)


@rule_for("topk")
def _topk(item: Item, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> tuple[Item, Item]:
    """Of as many elements as each item has, which are at least `k`: what is behind them is never among those."""
    whole = item.packed.uniform()
    if whole is None:
        if item.dim() != 1:
            raise Unroll
        last = -float("inf") if largest else float("inf")
        whole = _pad_sequence([item], batch_first=True, padding_value=last)
    found = torch.topk(whole, k, _axis(item, dim) + 1, largest, sorted)
    first, second = (of_one_size(data, item.packed.count) for data in found)
    return first, second


# --- sizes and axes ---------------------------------------------------------------------------------------------------


def _listed(sizes: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], list | tuple | torch.Size) else sizes


@rule_for("view", "reshape")
def _reshape(item: Item, *sizes: Any, shape: Any = None) -> Item:
    if len(sizes) == 1 and isinstance(sizes[0], torch.dtype):
        raise Unroll
    wanted: list[Size] = [number_of(x) for x in _listed(sizes if shape is None else (shape,))]
    if -1 in [x for x in wanted if isinstance(x, int)]:
        at = next(i for i, x in enumerate(wanted) if isinstance(x, int) and x == -1)
        wanted[at] = _left_over(item.packed, wanted[:at] + wanted[at + 1 :])
    return Item(item.packed.reshaped(tuple(wanted)))


def _left_over(packed: Packed, others: list[Size]) -> Size:
    """The size that is not said. One for all items where what differs between them is said elsewhere."""
    ragged = [x for x in packed.sizes if is_ragged(x)]
    if any(map(is_ragged, others)) or not ragged:
        known = product(x for x in others if not is_ragged(x))
        plain = product(x for x in packed.sizes if not is_ragged(x))
        if len(ragged) == 0 or len(ragged) == sum(map(is_ragged, others)):
            return plain // known
    return product(packed.sizes) // product(others)


@rule_for("flatten")
def _flatten(item: Item, start_dim: int = 0, end_dim: int = -1) -> Item:
    first, last, sizes = _axis(item, start_dim), _axis(item, end_dim), item.packed.sizes
    return Item(item.packed.reshaped((*sizes[:first], product(sizes[first : last + 1]), *sizes[last + 1 :])))


@rule_for("unsqueeze")
def _unsqueeze(item: Item, dim: int) -> Item:
    axis, sizes = _axis(item, dim, 1), item.packed.sizes
    return Item(item.packed.reshaped((*sizes[:axis], 1, *sizes[axis:])))


@rule_for("squeeze")
def _squeeze(item: Item, dim: int) -> Item:
    axis, sizes = _axis(item, dim), item.packed.sizes
    if is_ragged(sizes[axis]) or sizes[axis] != 1:
        return item
    return Item(item.packed.reshaped((*sizes[:axis], *sizes[axis + 1 :])))


@rule_for("permute")
def _permute(item: Item, *dims: Any) -> Item:
    return Item(item.packed.permuted(tuple(_axis(item, dim) for dim in _listed(dims))))


@rule_for("transpose")
def _transpose(item: Item, dim0: int, dim1: int) -> Item:
    axes = list(range(item.dim()))
    a, b = _axis(item, dim0), _axis(item, dim1)
    axes[a], axes[b] = axes[b], axes[a]
    return Item(item.packed.permuted(tuple(axes)))


@rule_for("t")
def _t(item: Item) -> Item:
    return _transpose(item, 0, 1) if item.dim() == 2 else item


@rule_for("expand")
def _expand(item: Item, *sizes: Any) -> Item:
    wanted, packed = _listed(sizes), item.packed
    if packed.lead or any(isinstance(x, Item) for x in wanted):
        raise Unroll
    missing = len(wanted) - item.dim()
    data = packed.data.reshape(packed.count, *[1] * missing, *packed.sizes).expand(packed.count, *wanted)
    return of_one_size(data, packed.count)


def widened(original: Callable[..., Any]) -> Callable[..., Any]:
    """`expand` of a tensor that all items share, to sizes of each."""

    def expand(self: torch.Tensor, *sizes: Any, **options: Any) -> Any:
        wanted = _listed(sizes)
        count = next((size.packed.count for size in wanted if isinstance(size, Item)), None)
        if count is None:
            return original(self, *sizes, **options)
        if self.dim() != len(wanted):
            raise Unroll
        full = tuple(
            size if is_ragged(size) or size != -1 else own
            for size, own in zip(map(number_of, wanted), self.shape, strict=True)
        )
        return Item(repeated(self, count).spread(full, lead_of(full)))

    return expand


@rule_for("repeat")
def _repeat(item: Item, *times: Any) -> Item:
    """Along the first axis, each item as often as it says."""
    first, *rest = map(number_of, _listed(times))
    if any(is_ragged(x) or x != 1 for x in rest) or len(rest) + 1 != item.dim():
        raise Unroll
    length = item.packed.sizes[0]
    sizes = (length * first, *item.packed.sizes[1:])

    def source(found: Places, of_item: torch.Tensor) -> Places:
        return [found[0] % (length[of_item] if is_ragged(length) else length), *found[1:]]

    return Item(item.packed.gathered(sizes, max(item.packed.lead, 1), source))


# --- lists ------------------------------------------------------------------------------------------------------------


@rule_for("cat", "concat", "concatenate")
def _cat(tensors: Any, dim: int = 0) -> Any:
    """Several of each item are joined within it; a list of one, which stands for all items, into a tensor."""
    items = [x for x in tensors if isinstance(x, Item)]
    axis = _axis(items[0], dim)
    if len(tensors) == 1:
        return _all_joined(items[0], axis)
    count = items[0].packed.count
    return Item(joined_within([x.packed if isinstance(x, Item) else repeated(x, count) for x in tensors], axis))


def _all_joined(item: Item, axis: int) -> torch.Tensor:
    others = [x for x in range(item.dim()) if x != axis]
    packed = item.packed.permuted((axis, *others))
    if any(is_ragged(size) for size in packed.sizes[1:]):
        raise Unroll
    return packed.with_lead(max(packed.lead, 1)).data.reshape(-1, *packed.sizes[1:]).movedim(0, axis)


@rule_for("stack")
def _stack(tensors: Any, dim: int = 0) -> Any:
    if len(tensors) > 1:
        return _cat([_unsqueeze(x, dim) if isinstance(x, Item) else x.unsqueeze(dim) for x in tensors], dim)
    data = tensors[0].packed.uniform()
    if data is None:
        raise Unroll
    return data.movedim(0, dim)


@rule_for("pad_sequence")
def _pad_sequence(
    tensors: Any, batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Any:
    packed = tensors[0].packed
    if len(tensors) > 1 or padding_side != "right" or packed.lead != 1:
        raise Unroll
    lengths = packed.rows()
    item, place = places(lengths)
    sizes = (packed.count, read_number(lengths.max()), *packed.sizes[1:])
    whole = torch.full(sizes, padding_value, dtype=packed.data.dtype, device=packed.data.device)
    whole[item, place] = packed.data
    return whole if batch_first else whole.transpose(0, 1)


# --- new ones ---------------------------------------------------------------------------------------------------------


def counted(original: Callable[..., Any]) -> Callable[..., Any]:
    """`torch.arange` up to a number of each item."""

    def arange(*bounds: Any, **options: Any) -> Any:
        if not any(isinstance(bound, Item) for bound in bounds):
            return original(*bounds, **options)
        if len(bounds) != 1:
            raise Unroll
        lengths = bounds[0].packed.data.to(torch.int64)
        rank = places(lengths)[1].to(options.get("dtype") or torch.int64)
        return Item(Packed(rank, (lengths,), 1, bounds[0].packed.count))

    return arange


def made(original: Callable[..., Any]) -> Callable[..., Any]:
    """`torch.ones` and its kind with sizes of items."""

    def make(*sizes: Any, **options: Any) -> Any:
        flat = _listed(sizes[:1] if original.__name__ == "full" else sizes)
        if not any(isinstance(size, Item) for size in flat):
            return original(*sizes, **options)
        first = next(size for size in flat if isinstance(size, Item)).packed
        wanted = tuple(map(number_of, flat))
        like = Packed(first.data, wanted, lead_of(wanted), first.count)
        rows = places(like.rows())[0].shape[0]
        rest = sizes[1:] if original.__name__ == "full" else ()
        data = original((rows, *wanted[like.lead :]), *rest, **options)
        return Item(Packed(data, wanted, like.lead, first.count))

    return make
