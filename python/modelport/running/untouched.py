"""Memory of zeros that the system gives when it is written to.

A cache has room for all that a text may become. To set that to zero can take longer than to read a prompt, and most of
it may never be needed."""

from __future__ import annotations

import math
import mmap
from collections.abc import Sequence

import torch

_LEAST_BYTES = 4 << 20  # less is quicker to set to zero than to ask for page by page


def untouched_zeros(shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
    size = math.prod(shape) * dtype.itemsize
    if size < _LEAST_BYTES:
        return torch.zeros(*shape, dtype=dtype)
    # Not shared with processes that this one starts, which is what Unix has otherwise.
    private = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}
    return torch.frombuffer(mmap.mmap(-1, size, **private), dtype=dtype).view(*shape)
