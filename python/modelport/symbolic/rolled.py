"""Loops over the items of a tensor whose number is symbolic, kept whole where the items only come together again.

`torch.split(x, lengths.tolist())` followed by `torch.cat`, by attention within each piece, or `list(x)` followed by
`torch.cat`: unrolled, they pin how many pieces there are. Here the pieces stay one tensor. What cannot be done this way
raises `Unroll` or gives other values than the model, and the model is captured again with its loops unrolled."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from ..base import core
from ..base.core import concerns_graph, is_recording
from .item_indices import concerns_items, put_into, taken_from
from .items import RULES, Each, Item, are_several, of_pieces, of_rows
from .ragged import Packed
from .unroll import NoLength, Unroll

_SEGMENTS = "_modelport_segments"  # on a tensor that stands for all pieces: their lengths
_OF = "_modelport_of"  # on indices of what is set: among how many


class _State(threading.local):
    def __init__(self) -> None:
        self.on = False
        self.used = False
        self.items = False  # what is done to one item of a loop is done to all at once
        self.looped = False  # a loop over items was unrolled


_state = _State()


@contextmanager
def rolling(on: bool, items: bool = False) -> Iterator[None]:
    """Whether loops are kept rolled in this thread; with `items`, those that do something to each item, too."""
    _state.on, _state.used, _state.items, _state.looped = on, False, items, False
    try:
        with _ItemsAsIndices() if items else nullcontext():
            yield
    finally:
        _state.on = _state.items = False


def unrolled_a_loop() -> bool:
    """Whether the last capture of this thread went through items one by one."""
    return _state.looped


def takes_all_items(count: Any) -> bool:
    """Whether a loop over so many items is to run once, for all of them."""
    takes = _state.items and are_several(count)
    _state.used = _state.used or takes
    return takes


def note_loop() -> None:
    _state.looped = True


def was_used() -> bool:
    """Whether the last capture of this thread holds a loop that was kept rolled."""
    return _state.used


def is_rolling(tensor: Any, axis: int = 0) -> bool:
    """Whether the items of this tensor along the axis are to be kept together."""
    return (
        _state.on
        and is_recording()
        and isinstance(tensor, torch.Tensor)
        and tensor.dim() > axis
        and concerns_graph(tensor)
        and isinstance(tensor.shape[axis], torch.SymInt)
    )


class Lengths(Sequence[Any]):
    """What `lengths.tolist()` gives: numbers, as soon as anything but a split asks for them."""

    def __init__(self, tensor: torch.Tensor, note_use: Callable[..., None]):
        self.tensor, self.note_use = tensor, note_use

    def __len__(self) -> int:
        raise NoLength

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, Each):
            return of_rows(self.tensor)
        raise Unroll

    def __iter__(self) -> Iterator[Any]:
        self.note_use("sum", "max", "min")
        if not takes_all_items(self.tensor.shape[0]):
            note_loop()
            raise Unroll
        yield of_rows(self.tensor)


class Pieces(Sequence[torch.Tensor]):
    """What a split by such lengths gives: one item, which stands for all."""

    def __init__(self, whole: torch.Tensor, lengths: torch.Tensor, axis: int):
        self.whole, self.lengths, self.axis = whole, lengths, axis % whole.dim()

    def __len__(self) -> int:
        raise NoLength

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, Each):
            return of_pieces(self.whole, self.lengths, self.axis)
        raise Unroll

    def __iter__(self) -> Iterator[Any]:
        if takes_all_items(self.lengths.shape[0]):
            yield Piece(self.whole, self.lengths, self.axis)
            return
        note_loop()
        if core.real_tensor(self.lengths).numel() < 2:
            raise Unroll  # with one piece, values could not show that pieces got mixed up
        item = self.whole.detach()
        setattr(item, _SEGMENTS, self.lengths)
        yield item


class Rows(Sequence[torch.Tensor]):
    """What `list(tensor)` gives: rows, as soon as anything but a concatenation asks for them."""

    def __init__(self, tensor: torch.Tensor):
        self.tensor = tensor

    def __len__(self) -> int:
        return len(self.tensor)

    def __getitem__(self, index: Any) -> Any:
        return self.tensor.unbind(0)[index]

    def __iter__(self) -> Iterator[torch.Tensor]:
        return iter(self.tensor.unbind(0))


def nonzero(original: Callable[..., Any]) -> Callable[..., Any]:
    """A loop over `hit.nonzero()`, with one flag for each of a fixed number of experts, goes over all of them: for one
    that is not hit, there is nothing to do."""

    def nonzero(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        found = original(self, *args, **kwargs)
        if _state.on and self.dim() == 1 and isinstance(self.shape[0], int) and is_rolling(found):
            setattr(found, _OF, self.shape[0])
        return found

    return nonzero


def iterate(original: Callable[..., Any], note: Callable[..., None]) -> Callable[..., Any]:
    def __iter__(self: torch.Tensor) -> Any:
        count = getattr(self, _OF, None)
        if count is not None and is_rolling(self):
            _state.used = True
            return iter(torch.arange(count, device=self.device)[:, None].unbind(0))
        if is_recording() and concerns_graph(self):
            if is_rolling(self) and takes_all_items(self.shape[0]):
                return iter((of_rows(self),))
            if self.dim() and isinstance(self.shape[0], torch.SymInt):
                note_loop()
            note("list", "enumerate", "zip")
        return original(self)

    return __iter__


def split(original: Callable[..., Any]) -> Callable[..., Any]:
    def split(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        # torch.split and Tensor.split have different names for what comes first.
        lengths: Any = args[0] if args else next((given for name, given in kwargs.items() if name != "dim"), None)
        axis = args[1] if len(args) > 1 else kwargs.get("dim", 0)
        if not _are_lengths(lengths):
            pieces = _of_one_length(tensor, lengths, axis)
            return original(tensor, *args, **kwargs) if pieces is None else [pieces]
        _state.used = True
        numbers = lengths.tensor if isinstance(lengths, Lengths) else lengths[0].packed.data
        return Pieces(tensor, numbers, axis)

    return split


def _of_one_length(tensor: torch.Tensor, lengths: Any, axis: int) -> Item | None:
    """Pieces by a list with one plain number, which a loop over items filled, and which does not cover the tensor: it
    is the length of each."""
    listed = isinstance(lengths, list | tuple) and len(lengths) == 1 and isinstance(lengths[0], int) and lengths[0] > 0
    if not listed or not _state.items or not is_rolling(tensor, axis % tensor.dim()):
        return None
    count = tensor.shape[axis] // lengths[0]
    if core.sym_hint(tensor.shape[axis].node) % lengths[0] or not takes_all_items(count):
        return None
    return of_rows(tensor.unflatten(axis, (count, lengths[0])), axis % tensor.dim())


def _are_lengths(given: Any) -> bool:
    """As they are read from a tensor, or a list that a loop over items filled."""
    return isinstance(given, Lengths) or (isinstance(given, list) and len(given) == 1 and isinstance(given[0], Item))


def cat(original: Callable[..., Any]) -> Callable[..., Any]:
    def cat(tensors: Any, *args: Any, **kwargs: Any) -> torch.Tensor:
        if not isinstance(tensors, Pieces | Rows):
            return original(tensors, *args, **kwargs)
        axis = args[0] if args else kwargs.get("dim", 0)
        _state.used = True
        if isinstance(tensors, Rows):
            return _joined(tensors.tensor, axis)
        if axis % tensors.whole.dim() != tensors.axis:
            raise Unroll
        return tensors.whole

    return cat


def _joined(rows: torch.Tensor, axis: int) -> torch.Tensor:
    """Rows of `[n, a, b]` along their axis: `[n*a, b]`, or `[a, n*b]`."""
    axis %= rows.dim() - 1
    return rows.movedim(0, axis).flatten(axis, axis + 1)


class Piece(Item):
    """A piece that stands for all, as long as it only attends within itself, is turned, and comes together again."""

    def __init__(self, whole: torch.Tensor, lengths: torch.Tensor, axis: int):
        self.whole, self.lengths, self.axis = whole, lengths, axis

    @property
    def packed(self) -> Packed:  # type: ignore[override]
        return of_pieces(self.whole, self.lengths, self.axis).packed

    def transpose(self, dim0: int, dim1: int) -> Piece:
        axes = list(range(self.whole.dim()))
        axes[dim0], axes[dim1] = axes[dim1], axes[dim0]
        return Piece(self.whole.transpose(dim0, dim1), self.lengths, axes.index(self.axis))

    def is_matrix(self) -> bool:
        return self.whole.dim() > 2 and self.axis >= self.whole.dim() - 2

    def contiguous(self) -> Piece:
        return Piece(self.whole.contiguous(), self.lengths, self.axis)

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function.__name__ in ("cat", "concat") and len(args[0]) == 1:
            axis = args[1] if len(args) > 1 else (kwargs or {}).get("dim", 0)
            if axis % args[0][0].whole.dim() == args[0][0].axis:
                return args[0][0].whole
        if function.__name__ == "matmul" and all(isinstance(x, Piece) and x.is_matrix() for x in args):
            return Scores.between(*args)
        return super().__torch_function__(function, types, args, kwargs)


class Scores:
    """Products of the queries and keys of each piece with each other, and what attention makes of them, in the matrix
    of all pieces: what is between two of them counts for nothing."""

    def __init__(self, whole: torch.Tensor, lengths: torch.Tensor):
        self.whole, self.lengths = whole, lengths

    @classmethod
    def between(cls, queries: Piece, keys: Piece) -> Scores:
        rows = queries.whole.dim() - 2
        if queries.axis != rows or keys.axis != rows + 1 or queries.lengths is not keys.lengths:
            raise Unroll
        products = queries.whole @ keys.whole
        return cls(products.masked_fill(~_within(keys.lengths, products.shape[-1]), -torch.inf), keys.lengths)

    dtype = property(lambda self: self.whole.dtype)

    def __mul__(self, scale: Any) -> Scores:
        if not isinstance(scale, float | int) or scale <= 0:
            raise Unroll
        return Scores(self.whole * scale, self.lengths)

    def __truediv__(self, scale: Any) -> Scores:
        return self * (1 / scale)

    def to(self, dtype: torch.dtype) -> Scores:
        return Scores(self.whole.to(dtype), self.lengths)

    def __getattr__(self, name: str) -> Any:
        raise Unroll

    @classmethod
    def __torch_function__(cls, function: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given, (scores, *rest) = kwargs or {}, args
        if function.__name__ == "softmax" and isinstance(scores, Scores) and (given.get("dim") or rest[0]) == -1:
            return cls(scores.whole.softmax(-1, given.get("dtype")), scores.lengths)
        if function.__name__ == "dropout" and isinstance(scores, Scores) and not given.get("training"):
            return scores
        if function.__name__ == "matmul" and isinstance(scores, Scores) and isinstance(rest[0], Piece):
            values = rest[0]
            if values.axis == values.whole.dim() - 2 and values.lengths is scores.lengths:
                return Piece(scores.whole @ values.whole, values.lengths, values.axis)
        raise Unroll


def _within(lengths: torch.Tensor, total: Any) -> torch.Tensor:
    """[total, total]: which positions are in one piece."""
    positions = torch.arange(total, device=lengths.device)
    piece = (positions[:, None] >= lengths.cumsum(0)[None, :]).sum(1)
    return piece[:, None] == piece[None, :]


class _ItemsAsIndices(TorchFunctionMode):
    """`tensor[item]`. The methods are not replaced: a class whose `__getitem__` was once is a sequence ever after."""

    def __torch_function__(self, function: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function is torch.Tensor.__getitem__ and concerns_items(args[1]):
            return taken_from(*args)
        if function is torch.Tensor.__setitem__ and concerns_items(args[1]):
            return put_into(*args)
        if function is torch.nn.functional.interpolate and _is_of_items((kwargs or {}).get("size")):
            return RULES["interpolate"](*args, **(kwargs or {}))
        return function(*args, **(kwargs or {}))


def _is_of_items(size: Any) -> bool:
    return isinstance(size, tuple | list) and any(isinstance(part, Item) for part in size)


def attention(original: Callable[..., Any]) -> Callable[..., Any]:
    """Within each piece: a mask that lets a position see its own piece."""

    def scaled_dot_product_attention(
        query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, attn_mask: Any = None, *args: Any, **kwargs: Any
    ) -> torch.Tensor:
        if isinstance(query, Piece):
            parts = [x.whole.detach() for x in (query, key, value)]
            setattr(parts[0], _SEGMENTS, query.lengths)
            whole = scaled_dot_product_attention(*parts, attn_mask, *args, **kwargs)
            return Piece(whole, query.lengths, query.axis)
        lengths = getattr(query, _SEGMENTS, None)
        if lengths is None or not is_recording():
            return original(query, key, value, attn_mask, *args, **kwargs)
        if attn_mask is not None or kwargs.get("is_causal"):
            raise Unroll
        return original(query, key, value, _within(lengths, query.shape[-2]), *args, **kwargs)

    return scaled_dot_product_attention
