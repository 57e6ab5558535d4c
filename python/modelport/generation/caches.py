"""Caches as inputs and outputs of a graph."""

from __future__ import annotations

from transformers.cache_utils import (
    Cache,
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


def keep_whole_past(cache: Cache) -> None:
    """Layers that keep only a window count in Python what they have seen. With the whole past the mask makes the
    window, every layer has the same length, and the clients know how to handle it."""
    for part in parts_of(cache):
        part.layers = [_whole(layer) for layer in part.layers]


def _whole(layer: object) -> object:
    if isinstance(layer, LinearAttentionAndSlidingWindowAttentionLayer):
        return LinearAttentionAndFullAttentionLayer(layer.number_of_states)
    return DynamicLayer() if type(layer) is DynamicSlidingWindowLayer else layer
