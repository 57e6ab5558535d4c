"""The bytes of weights, piece by piece, and by how much those of two differ."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

PIECE = 1 << 24
Contents = Callable[[], Iterator[bytes]]

_FLOATS = {
    "f64": "<f8", "f32": "<f4", "f16": "<f2", "float64": "<f8", "float32": "<f4", "float16": "<f2",
    "F64": "<f8", "F32": "<f4", "F16": "<f2",
}  # fmt: skip
_BFLOATS = {"bf16", "bfloat16", "BF16"}


def of_file(file: Path, start: int, size: int) -> Contents:
    def pieces() -> Iterator[bytes]:
        left = size
        with file.open("rb") as opened:
            opened.seek(start)
            while left > 0 and (piece := opened.read(min(PIECE, left))):
                left -= len(piece)
                yield piece

    return pieces


def of_tensor(tensor: Any) -> Contents:
    def pieces() -> Iterator[bytes]:
        import torch

        flat = tensor.detach().contiguous().flatten().view(torch.uint8)
        for start in range(0, flat.numel(), PIECE):
            yield flat[start : start + PIECE].numpy().tobytes()

    return pieces


def difference(before: Contents, after: Contents, dtype: str) -> str | None:
    """In words; None where they are the same bytes."""
    largest, same = 0.0, True
    for one, other in zip_longest(before(), after(), fillvalue=b""):
        if one == other:
            continue
        same = False
        apart = _largest(one, other, dtype) if len(one) == len(other) else None
        if apart is None:
            return "other contents"
        largest = max(largest, apart)
    if same:
        return None
    return (
        "other contents, with infinities or NaN" if math.isinf(largest) else f"other contents, by {largest:.3g} at most"
    )


def _largest(one: bytes, other: bytes, dtype: str) -> float | None:
    if dtype not in _FLOATS and dtype not in _BFLOATS:
        return None
    import numpy as np

    def numbers(piece: bytes) -> Any:
        if dtype in _BFLOATS:
            return (np.frombuffer(piece, "<u2").astype("<u4") << 16).view("<f4")
        return np.frombuffer(piece, _FLOATS[dtype])

    with np.errstate(all="ignore"):
        apart = np.abs(numbers(one).astype("f8") - numbers(other).astype("f8"))
    return float(np.max(np.where(np.isfinite(apart), apart, math.inf)))
