"""A loop over items whose number is symbolic, run once for all of them.

`for image in images` gives one `Item`, which stands for each image, and `for i in range(batch)` one `Each`, which
stands for each number. What the model computes of an item is computed of all at once; lists that the loop fills hold
one item, and where the model joins such a list it gets the whole tensor. What no rule here covers raises `Unroll`, and
what is covered is compared with the model by value: a loop in which items depend on each other is unrolled then."""

from __future__ import annotations

import builtins
import functools
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

    asked_what_it_is: Callable[[], None] = staticmethod(lambda: None)

    @property  # type: ignore[misc]
    def __class__(self) -> type[Any]:
        """What `isinstance` asks of what is no instance: `isinstance(image, torch.Tensor)` in model code is noted. That
        it were one must not be said here: torch's own code would take an item for the memory of a tensor."""
        self.asked_what_it_is()
        return type(self)

    @property
    def shape(self) -> tuple[Any, ...]:
        return tuple(Number(size, self.packed.count) if is_ragged(size) else size for size in self.packed.sizes)

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

    def __int__(self) -> int:
        return builtins.int(self.item())

    __index__ = __int__

    def __float__(self) -> float:
        return builtins.float(self.item())

    def __setitem__(self, *_: Any) -> None:
        raise Unroll

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

    def item(self) -> Number:
        data = self.packed.uniform()
        if data is None:
            raise Unroll
        return Number(data.reshape(self.packed.count), self.packed.count)

    def tolist(self) -> Any:
        return self.item() if self.dim() == 0 else [row.tolist() for row in self]

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


class Number(Item):
    """A number of each item, as Python has them: whole, or of double precision. Where Python wants a plain one, all
    items have to have the same, and the graph is for such."""

    def __init__(self, data: torch.Tensor, count: Any):
        super().__init__(Packed(data.double() if data.is_floating_point() else data, (), 0, count))

    def _of_all(self) -> Any:
        data = self.packed.data
        value = core.real_tensor(data).flatten()[0].item()
        if not builtins.bool((data == value).all()):
            raise Unroll
        return value

    def __int__(self) -> int:
        return builtins.int(self.__trunc__()._of_all())

    __index__ = __int__

    def __float__(self) -> float:
        return builtins.float(self._of_all())

    def item(self) -> Number:
        return self

    def _whole(self, rounding: str) -> Number:
        return getattr(self, rounding)().to(torch.int64) if self.dtype == torch.float64 else self

    def __trunc__(self) -> Number:
        return self._whole("trunc")

    def __floor__(self) -> Number:
        return self._whole("floor")

    def __ceil__(self) -> Number:
        return self._whole("ceil")

    def __round__(self, digits: int | None = None) -> Number:
        if digits is None or self.dtype != torch.float64:
            return self._whole("round")
        return applied("round", (self,), {"decimals": digits})


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


def _quotient(left: Any, right: Any) -> Any:
    """Of two whole numbers, in Python's precision and not in that of torch's tensors."""
    return applied("add", (left, right.double() if isinstance(right, Number) else right), {}, operator.truediv)


for _name, _divide in (
    ("__truediv__", lambda self, other: _quotient(self.double(), other)),
    ("__rtruediv__", lambda self, other: _quotient(other, self)),
):
    setattr(Number, _name, _divide)


def are_several(count: Any) -> bool:
    """With one item, values could not show that items got mixed up: a loop over it is left as it is."""
    return (core.sym_hint(count.node) if isinstance(count, torch.SymInt) else count) > 1


def of_one_size(data: torch.Tensor, count: Any) -> Item:
    """Items that are one after the other along the first axis."""
    return Item(Packed(data, tuple(data.shape[1:]), 0, count))


def of_rows(tensor: torch.Tensor, axis: int = 0) -> Item:
    """The items of a tensor along an axis."""
    data = tensor.movedim(axis, 0)
    return of_one_size(data, tensor.shape[axis])


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
    values = (*args, *kwargs.values())
    items = [x.packed for x in values if isinstance(x, Item)]
    count = items[0].count
    shared = [repeated(x, count) for x in values if isinstance(x, torch.Tensor)]
    sizes = broadcast([*items, *shared])
    lead = lead_of(sizes)
    tensors = [x for x in values if isinstance(x, Item | torch.Tensor) and not isinstance(x, Number)]

    def operand(x: Any) -> Any:
        if isinstance(x, torch.Tensor):
            return x if x.dim() <= len(sizes) - lead else repeated(x, count).spread(sizes, lead).data
        if not isinstance(x, Item):
            return x
        data = x.packed.spread(sizes, lead).data
        return data.to(_type_among(x, tensors)) if tensors and isinstance(x, Number) else data

    data = function(*map(operand, args), **{name: operand(x) for name, x in kwargs.items()})
    if not tensors:
        return Number(data, count)
    return Item(Packed(data, (*sizes[:lead], *data.shape[1:]), lead, count))


def _type_among(number: Number, tensors: list[Any]) -> torch.dtype:
    """A plain number is of the type of the tensors that it meets, unless those are of whole numbers and it is not."""
    among = functools.reduce(torch.promote_types, (x.dtype for x in tensors))
    return torch.result_type(torch.empty(1, dtype=among), 1.0 if number.dtype == torch.float64 else 1)
