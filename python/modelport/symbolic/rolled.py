"""Loops over the items of a tensor whose number is symbolic, kept whole where the items only come together again.

`torch.split(x, lengths.tolist())` followed by `torch.cat`, by attention within each piece, or `list(x)` followed by
`torch.cat`: unrolled, they pin how many pieces there are. Here the pieces stay one tensor. What cannot be done this way
raises `Unroll` or gives other values than the model, and the model is captured again with its loops unrolled."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from ..base import core
from ..base.core import concerns_graph, is_recording

_SEGMENTS = "_modelport_segments"  # on a tensor that stands for all pieces: their lengths
_OF = "_modelport_of"  # on indices of what is set: among how many


class Unroll(Exception):
    """A loop that has to be unrolled."""


class _State(threading.local):
    def __init__(self) -> None:
        self.on = False
        self.used = False


_state = _State()


@contextmanager
def rolling(on: bool) -> Iterator[None]:
    """Whether loops are kept rolled in this thread."""
    _state.on, _state.used = on, False
    try:
        yield
    finally:
        _state.on = False


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

    def __init__(self, tensor: torch.Tensor):
        self.tensor = tensor

    def __len__(self) -> int:
        raise Unroll

    def __getitem__(self, index: Any) -> Any:
        raise Unroll

    def __iter__(self) -> Iterator[Any]:
        raise Unroll


class Pieces(Sequence[torch.Tensor]):
    """What a split by such lengths gives: one item, which stands for all."""

    def __init__(self, whole: torch.Tensor, lengths: torch.Tensor, axis: int):
        self.whole, self.lengths, self.axis = whole, lengths, axis % whole.dim()

    def __len__(self) -> int:
        raise Unroll

    def __getitem__(self, index: Any) -> Any:
        raise Unroll

    def __iter__(self) -> Iterator[torch.Tensor]:
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
        if _state.on and self.dim() == 1 and is_rolling(found):
            setattr(found, _OF, int(self.shape[0]))
        return found

    return nonzero


def iterate(original: Callable[..., Any], note: Callable[..., None]) -> Callable[..., Any]:
    def __iter__(self: torch.Tensor) -> Any:
        count = getattr(self, _OF, None)
        if count is not None and is_rolling(self):
            _state.used = True
            return iter(torch.arange(count, device=self.device)[:, None].unbind(0))
        if is_recording() and concerns_graph(self):
            note("list")
        return original(self)

    return __iter__


def split(original: Callable[..., Any]) -> Callable[..., Any]:
    def split(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        # torch.split and Tensor.split have different names for what comes first.
        lengths = next((given for given in (*args[:1], *kwargs.values()) if isinstance(given, Lengths)), None)
        if lengths is None:
            return original(tensor, *args, **kwargs)
        _state.used = True
        return Pieces(tensor, lengths.tensor, args[1] if len(args) > 1 else kwargs.get("dim", 0))

    return split


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


def attention(original: Callable[..., Any]) -> Callable[..., Any]:
    """Within each piece: a mask that lets a position see its own piece."""

    def scaled_dot_product_attention(
        query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, attn_mask: Any = None, *args: Any, **kwargs: Any
    ) -> torch.Tensor:
        lengths = getattr(query, _SEGMENTS, None)
        if lengths is None or not is_recording():
            return original(query, key, value, attn_mask, *args, **kwargs)
        if attn_mask is not None or kwargs.get("is_causal"):
            raise Unroll
        ends = lengths.cumsum(0)
        positions = torch.arange(query.shape[-2], device=query.device)
        piece = (positions[:, None] >= ends[None, :]).sum(1)
        return original(query, key, value, piece[:, None] == piece[None, :], *args, **kwargs)

    return scaled_dot_product_attention
