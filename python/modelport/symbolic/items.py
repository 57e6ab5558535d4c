"""A loop over items whose number is symbolic, run once for all of them.

`for image in images` gives one `Item`, which stands for each image, and `for i in range(batch)` one `Each`, which
stands for each number. What the model computes of an item is computed of all at once; lists that the loop fills hold
one item, and where the model joins such a list it gets the whole tensor. What no rule here covers raises `Unroll`, and
what is covered is compared with the model by value: a loop in which items depend on each other is unrolled then."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable, Iterator
from typing import Any

import torch

from ..base import core
from .ragged import Packed, broadcast, is_ragged, lead_of, places, repeated, require_same
from .unroll import Unroll


class Each:
    """The number of an item, of each. As an index of a list it is that of the one item in it."""

    def __init__(self, count: Any):
        self.count = count

    def __index__(self) -> int:
        return 0


class Item:
    """A tensor of each item."""

    def __init__(self, packed: Packed):
        self.packed = packed.tight()

    # --- what it says of itself ---

    @property
    def shape(self) -> tuple[Any, ...]:
        return tuple(Item(self._numbers(size)) if is_ragged(size) else size for size in self.packed.sizes)

    def _numbers(self, size: torch.Tensor) -> Packed:
        return Packed(size, (), 0, self.packed.count)

    def size(self, dim: int | None = None) -> Any:
        return self.shape if dim is None else self.shape[dim]

    def dim(self) -> int:
        return len(self.packed.sizes)

    ndim = property(dim)
    dtype = property(lambda self: self.packed.data.dtype)
    device = property(lambda self: self.packed.data.device)
    T = property(lambda self: self.permute(*reversed(range(self.dim()))))
    mT = property(lambda self: self.transpose(-2, -1))

    # --- where Python wants one value of all ---

    def __bool__(self) -> bool:
        """A condition that holds for all items or for none; the graph is for such."""
        for_some = builtins.bool(self.packed.data.any())
        if for_some and not builtins.bool(self.packed.data.all()):
            raise Unroll
        return for_some

    def _no_number(self, *_: Any) -> Any:
        raise Unroll

    __index__ = __int__ = __float__ = __setitem__ = _no_number

    def __len__(self) -> int:
        size = self.packed.sizes[0]
        if not isinstance(size, int):
            raise Unroll
        return size

    def __iter__(self) -> Iterator[Item]:
        size = self.packed.sizes[0]
        if is_ragged(size):
            raise Unroll
        for place in range(builtins.int(size)):
            yield self[place]

    def item(self) -> Item:
        return self

    def tolist(self) -> Any:
        return self if self.dim() == 0 else [row.tolist() for row in self]

    # --- what is computed of it ---

    def __getitem__(self, key: Any) -> Item:
        return _taken(self, key if isinstance(key, tuple) else (key,))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not callable(getattr(torch.Tensor, name, None)):
            raise AttributeError(name)
        return lambda *args, **kwargs: applied(name, (self, *args), kwargs)

    @classmethod
    def __torch_function__(cls, function: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return applied(function.__name__, args, kwargs or {}, function)


_COMPARING = ("eq", "ne", "lt", "le", "gt", "ge")
_ALONE = ("neg", "abs", "invert")


def _operator(name: str, swapped: bool = False) -> Callable[..., Any]:
    function = getattr(operator, name if name not in ("and", "or") else f"{name}_")
    rule = "matmul" if name == "matmul" else "add"  # element by element, as all others
    if swapped:
        return lambda self, other: applied(rule, (other, self), {}, function)
    return lambda *operands: applied(rule, operands, {}, function)


for _name in (
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "matmul",
    "and",
    "or",
    "xor",
    *_COMPARING,
    *_ALONE,
):
    setattr(Item, f"__{_name}__", _operator(_name))
    if _name not in (*_COMPARING, *_ALONE):
        setattr(Item, f"__r{_name}__", _operator(_name, swapped=True))
Item.__hash__ = object.__hash__  # type: ignore[method-assign]


def are_several(count: Any) -> bool:
    """With one item, values could not show that items got mixed up: a loop over it is left as it is."""
    return (core.sym_hint(count.node) if isinstance(count, torch.SymInt) else count) > 1


def of_rows(tensor: torch.Tensor, axis: int = 0) -> Item:
    """The items of a tensor along an axis."""
    data = tensor.movedim(axis, 0)
    return Item(Packed(data, tuple(data.shape[1:]), 0, tensor.shape[axis]))


def of_pieces(whole: torch.Tensor, lengths: torch.Tensor, axis: int) -> Item:
    """Pieces of a tensor along an axis, of these lengths, one after the other."""
    data = whole.movedim(axis, 0)
    item = Packed(data, (lengths, *data.shape[1:]), 1, lengths.shape[0])
    return Item(item.permuted((*range(1, axis + 1), 0, *range(axis + 1, whole.dim()))))


# --- parts of items and of tensors ------------------------------------------------------------------------------------


def _taken(item: Item, key: tuple[Any, ...]) -> Item:
    if key and all(isinstance(part, Item) and part.dtype != torch.bool for part in key):
        return Item(_picked(item.packed, [part.packed for part in key]))
    named = sum(1 for part in key if part is not None and part is not Ellipsis)
    packed, axis = item.packed, 0
    for part in key:
        if part is Ellipsis:
            axis += len(item.packed.sizes) - named
        elif part is None:
            packed = packed.reshaped((*packed.sizes[:axis], 1, *packed.sizes[axis:]))
            axis += 1
        elif isinstance(part, slice):
            packed = _sliced(packed, axis, part)
            axis += 1
        elif isinstance(part, Item) and part.dtype == torch.bool:
            packed = _chosen(packed, part.packed, axis)
            axis += 1
        elif isinstance(part, int | torch.SymInt):
            packed = _sliced(packed, axis, slice(part, part + 1 if part != -1 else None))
            packed = packed.reshaped((*packed.sizes[:axis], *packed.sizes[axis + 1 :]))
        else:
            raise Unroll
    return Item(packed)


def _sliced(packed: Packed, axis: int, part: slice) -> Packed:
    start, stop = (number_of(bound) for bound in (part.start, part.stop))
    if part.step not in (None, 1):
        raise Unroll
    if start is None and stop is None:
        return packed
    size = packed.sizes[axis]
    if axis >= packed.lead and not is_ragged(start) and not is_ragged(stop):
        data = packed.data[(slice(None),) * (axis - packed.lead + 1) + (slice(start, stop),)]
        sizes = (*packed.sizes[:axis], data.shape[axis - packed.lead + 1], *packed.sizes[axis + 1 :])
        return Packed(data, sizes, packed.lead, packed.count)
    start = 0 if start is None else start if is_ragged(start) or start >= 0 else size + start
    stop = size if stop is None else stop if is_ragged(stop) or stop >= 0 else size + stop
    if is_ragged(stop) and stop is not size:
        stop = torch.minimum(stop, size) if is_ragged(size) else stop.clamp(max=size)
    return packed.part(axis, start, stop - start)


def number_of(value: Any) -> Any:
    """Of each item, where it is one."""
    return value.packed.data if isinstance(value, Item) else value


def _chosen(packed: Packed, mask: Packed, axis: int) -> Packed:
    """The elements along the first axis for which a mask of it is true."""
    if axis or len(mask.sizes) != 1:
        raise Unroll
    require_same(packed.count, mask.count)
    rows, flags = packed.with_lead(max(packed.lead, 1)), mask.with_lead(1)
    if rows.lead != 1:
        raise Unroll
    item, _ = places(rows.rows())
    lengths = torch.zeros_like(rows.rows()).index_add(0, item, flags.data.to(torch.int64))
    return Packed(rows.data[flags.data], (lengths, *rows.sizes[1:]), 1, rows.count)


def _picked(packed: Packed, parts: list[Packed]) -> Packed:
    """The elements at places along the first axes, a list of places for each axis."""
    lead, (length, *more) = len(parts), parts[0].sizes
    if more or packed.lead > lead:
        raise Unroll
    require_same(packed.count, *(part.count for part in parts))
    here, rows = packed.with_lead(lead), [part.with_lead(1) for part in parts]
    data = here.at(places(rows[0].rows())[0], [row.data for row in rows])
    return Packed(data, (length, *here.sizes[lead:]), 1, here.count)


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


# --- functions --------------------------------------------------------------------------------------------------------

Rule = Callable[..., Any]
RULES: dict[str, Rule] = {}  # by the function's name; `item_rules` has them


def applied(name: str, args: tuple[Any, ...], kwargs: dict[str, Any], function: Any = None) -> Any:
    """A function of torch, known by its name, of items."""
    name = name.removesuffix("_")
    if name in RULES:
        return RULES[name](*args, **kwargs)
    function = function or getattr(torch.Tensor, name)
    if name in _CASTS and isinstance(args[0], torch.Tensor):  # to the type of an item
        return function(*(x.packed.data if isinstance(x, Item) else x for x in args), **kwargs)
    if _is_pointwise(name):
        return _pointwise(function, args, kwargs)
    raise Unroll


# What torch does to single elements without saying so of its operators.
_CASTS = {"to", "type", "float", "double", "long", "int", "half", "bfloat16", "bool", "type_as", "cpu"}
_OF_ELEMENTS = _CASTS | {"contiguous", "clone", "detach", "floor_divide", "true_divide", "clip", "masked_fill"}


def _is_pointwise(name: str) -> bool:
    if name in _OF_ELEMENTS:
        return True
    packet = getattr(torch.ops.aten, name, None)
    if packet is None:
        return False
    return any(torch.Tag.pointwise in getattr(packet, overload).tags for overload in packet.overloads())


def _pointwise(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Item:
    """Element by element, with sizes of one repeated as torch does it."""
    items = [x.packed for x in (*args, *kwargs.values()) if isinstance(x, Item)]
    count = items[0].count
    shared = [repeated(x, count) for x in (*args, *kwargs.values()) if isinstance(x, torch.Tensor)]
    sizes = broadcast([*items, *shared])
    lead = lead_of(sizes)

    def operand(x: Any) -> Any:
        if isinstance(x, torch.Tensor):
            return x if x.dim() <= len(sizes) - lead else repeated(x, count).spread(sizes, lead).data
        return x.packed.spread(sizes, lead).data if isinstance(x, Item) else x

    data = function(*map(operand, args), **{name: operand(x) for name, x in kwargs.items()})
    return Item(Packed(data, (*sizes[:lead], *data.shape[1:]), lead, count))
