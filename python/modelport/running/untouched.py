"""Memory of zeros that the system gives when it is written to.

A cache has room for all that a text may become. To set that to zero can take longer than to read a prompt, and most of
it may never be needed."""

from __future__ import annotations

import itertools
import math
import mmap
from collections.abc import Sequence

import torch

_LEAST_BYTES = 4 << 20  # less is quicker to set to zero than to ask for page by page
_ALIGNMENT = 64  # bytes of a line of a processor's cache


def untouched_zeros(shapes: Sequence[Sequence[int]], dtypes: Sequence[torch.dtype]) -> list[torch.Tensor]:
    """Tensors of all these shapes, one after the other in one piece."""
    kinds = list(zip(shapes, dtypes, strict=True))
    sizes = [-(-math.prod(shape) * dtype.itemsize // _ALIGNMENT) * _ALIGNMENT for shape, dtype in kinds]
    if sum(sizes) < _LEAST_BYTES:
        return [torch.zeros(*shape, dtype=dtype) for shape, dtype in kinds]
    # Not shared with processes that this one starts, which is what Unix has otherwise.
    private = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}
    piece = mmap.mmap(-1, sum(sizes), **private)
    starts = itertools.accumulate(sizes, initial=0)
    return [_tensor_in(piece, start, *kind) for start, kind in zip(starts, kinds, strict=False)]


def _tensor_in(piece: mmap.mmap, start: int, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
    count = math.prod(shape)
    if not count:
        return torch.zeros(*shape, dtype=dtype)
    return torch.frombuffer(piece, dtype=dtype, count=count, offset=start).view(*shape)
