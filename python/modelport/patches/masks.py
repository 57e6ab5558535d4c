"""Masks of attention without torch.vmap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def broadcast_mask(_original: Any) -> Callable[..., Any]:
    """torch.vmap calls higher-order operators that know no kernel for the recorder's dispatch key. Mask functions work
    on indices element by element, so that indices which broadcast give the same mask."""

    def expansion(mask_function: Callable[..., Any]) -> Callable[..., Any]:
        def mask(*indices: Any) -> Any:
            sizes = [index.shape[0] for index in indices]
            shapes = [[-1 if axis == own else 1 for axis in range(len(indices))] for own in range(len(indices))]
            spread = [index.reshape(shape) for index, shape in zip(indices, shapes, strict=True)]
            return mask_function(*spread).expand(sizes)

        return mask

    return expansion
