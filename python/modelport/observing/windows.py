"""Caches that keep a window, during a capture: how full it is is read off the tensor, not counted in Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..symbolic.replaced_attributes import replaced_here


@contextmanager
def windows_by_tensors() -> Iterator[None]:
    """A layer with a sliding window asks whether it is full, and one graph would then serve full windows or filling
    ones. What it holds is as long as min(seen, window - 1) in both cases."""
    from transformers import cache_utils, masking_utils

    with (
        replaced_here(cache_utils.DynamicSlidingWindowLayer, "get_mask_sizes", _sizes_of_tensors),
        replaced_here(masking_utils, "_ignore_causal_mask_sdpa", _never),
    ):
        yield


def _sizes_of_tensors(original: Callable[..., Any]) -> Callable[..., Any]:
    def get_mask_sizes(self: Any, query_length: int) -> tuple[int, int]:
        if self.record_past or not self.is_initialized or self.keys.dim() < 2:
            return original(self, query_length)
        held = self.keys.shape[-2]
        return held + query_length, self.cumulative_length - held

    return get_mask_sizes


def _never(_original: Callable[..., Any]) -> Callable[..., bool]:
    """The answer is no in every export, but it compares the mask with the window before it says so."""
    return lambda *_args, **_kwargs: False
