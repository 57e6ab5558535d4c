"""Caches as inputs and outputs of a graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from transformers.cache_utils import (
    Cache,
    DynamicCache,
    DynamicLayer,
    DynamicSlidingWindowLayer,
    EncoderDecoderCache,
    LinearAttentionAndFullAttentionLayer,
    LinearAttentionAndSlidingWindowAttentionLayer,
)


def parts_of(cache: Cache) -> list[Cache]:
    if isinstance(cache, EncoderDecoderCache):
        return [cache.self_attention_cache, cache.cross_attention_cache]
    return [cache]


def masks_know_the_past(call: Mapping[str, Any]) -> bool:
    """Whether a cache that has keys says so: its first layer is asked for its length. In a model whose first layer has
    no keys, masks are as if there were no past, so that only the layers themselves keep to a window."""
    caches = [part for value in call.values() if isinstance(value, Cache) for part in parts_of(value)]
    return all(cache.get_seq_length() for cache in caches if any(map(_has_keys, cache.layers)))


def _has_keys(layer: Any) -> bool:
    keys = getattr(layer, "keys", None)
    return keys is not None and keys.numel() > 0


def keep_whole_past(cache: Cache) -> None:
    """Layers that keep only a window count in Python what they have seen. With the whole past the mask makes the
    window, every layer has the same length, and the clients know how to handle it."""
    for part in parts_of(cache):
        part.layers = [_whole(layer) for layer in part.layers]


class WindowLayer(DynamicLayer):
    """The last tokens of the past, and no count of all of them: for models whose masks do not ask for it."""

    is_sliding = True

    def __init__(self, window: int):
        super().__init__()
        self.window = window

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        keys, values = super().update(key_states, value_states, *args, **kwargs)
        start = torch.sym_max(keys.shape[-2] - self.window + 1, 0)
        self.keys, self.values = keys[:, :, start:], values[:, :, start:]
        return keys, values


def keep_windows(cache: Cache) -> None:
    for part in parts_of(cache):
        part.layers = [
            WindowLayer(x.sliding_window) if type(x) is DynamicSlidingWindowLayer else x for x in part.layers
        ]


def _whole(layer: object) -> object:
    if isinstance(layer, LinearAttentionAndSlidingWindowAttentionLayer):
        return LinearAttentionAndFullAttentionLayer(layer.number_of_states)
    return DynamicLayer() if type(layer) is DynamicSlidingWindowLayer else layer


def only_grows(cache: Cache) -> bool:
    """Whether keys and values of the past are all that is in it: no states, and nothing that is counted."""
    return type(cache) is DynamicCache and all(type(layer) is DynamicLayer for layer in cache.layers)
