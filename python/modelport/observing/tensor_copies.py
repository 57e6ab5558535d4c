"""Copies of tensors, each content once: what repeats is shared, and a cache that grew holds its earlier states."""

from __future__ import annotations

import torch


class Kept:
    """A copy of a tensor, or the leading part of another copy along one axis."""

    __slots__ = ("_axis", "_length", "_tensor", "_whole")

    def __init__(self, tensor: torch.Tensor):
        self._tensor: torch.Tensor | None = tensor
        self._whole: Kept | None = None
        self._axis = 0
        self._length = 0

    @property
    def tensor(self) -> torch.Tensor:
        if self._whole is not None:
            return self._whole.tensor.narrow(self._axis, 0, self._length)
        assert self._tensor is not None
        return self._tensor

    def become_part_of(self, whole: Kept, axis: int) -> None:
        """Lets go of the memory: `whole` begins with the same values."""
        self._whole, self._axis, self._length = whole, axis, self.tensor.shape[axis]
        self._tensor = None

    @property
    def owns_memory(self) -> bool:
        return self._tensor is not None


class Store:
    """Keeps tensors by name. The last one of a name is compared with the next: content, not identity, so that a model
    may write into its tensors between calls."""

    def __init__(self) -> None:
        self._last: dict[str, Kept] = {}

    def keep(self, name: str, tensor: torch.Tensor) -> Kept:
        tensor = tensor.detach()
        last = self._last.get(name)
        if last is not None:
            known = last.tensor
            if _alike(known, tensor) and known.shape == tensor.shape and _equal(known, tensor):
                return last
        kept = Kept(_copied(tensor))
        if last is not None:
            axis = _longer_axis(last.tensor, kept.tensor)
            if axis is not None:
                last.become_part_of(kept, axis)
        self._last[name] = kept
        return kept


def _copied(tensor: torch.Tensor) -> torch.Tensor:
    # Tensors of inference mode could not be used outside of it.
    with torch.inference_mode(False), torch.no_grad():
        return tensor.clone(memory_format=torch.contiguous_format)


def _alike(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.dtype == other.dtype and one.device == other.device and one.layout == other.layout == torch.strided


def _equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    try:
        with torch.no_grad():
            return torch.equal(one, other)
    except RuntimeError:  # some types of eight bits and fewer cannot be compared
        return False


def _longer_axis(short: torch.Tensor, long: torch.Tensor) -> int | None:
    """The one axis along which `long` continues `short`."""
    if not _alike(short, long) or short.dim() != long.dim() or short.numel() == 0:
        return None
    axes = [axis for axis, (a, b) in enumerate(zip(short.shape, long.shape, strict=True)) if a != b]
    if len(axes) != 1 or short.shape[axes[0]] > long.shape[axes[0]]:
        return None
    axis = axes[0]
    return axis if _equal(short, long.narrow(axis, 0, short.shape[axis])) else None
