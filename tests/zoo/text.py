"""Inputs of models that read tokens: ids, masks with padding, decoder ids, caches."""

from __future__ import annotations

from typing import Any

import torch
from transformers import Cache, DynamicCache, EncoderDecoderCache, StaticCache
from transformers.modeling_outputs import BaseModelOutput

from .row import Draw, Inputs

# Ids below this are special tokens (padding, start, end) in the tiny configs.
FIRST_PLAIN_ID = 5


def vocabulary(config: Any) -> int:
    return config.get_text_config().vocab_size


def draw_ids(draw: Draw, seq: int, vocab: int | None = None) -> torch.Tensor:
    return draw.integers(FIRST_PLAIN_ID, vocab or vocabulary(draw.config), draw.size.batch, seq)


def padding(batch: int, seq: int, *, left: bool) -> torch.Tensor:
    """Row i of the mask hides i+1 tokens (at most half of them), the last row hides none."""
    mask = torch.ones(batch, seq, dtype=torch.int64)
    for i in range(batch - 1):
        hidden = min(i + 1, seq // 2)
        if left:
            mask[i, :hidden] = 0
        else:
            mask[i, seq - hidden :] = 0
    return mask


def ids(draw: Draw) -> Inputs:
    return {"input_ids": draw_ids(draw, draw.size.seq)}


def right_padded(draw: Draw) -> Inputs:
    mask = padding(draw.size.batch, draw.size.seq, left=False)
    return {**ids(draw), "attention_mask": mask}


def left_padded(draw: Draw) -> Inputs:
    mask = padding(draw.size.batch, draw.size.seq, left=True)
    return {**ids(draw), "attention_mask": mask}


def right_padded_pairs(draw: Draw) -> Inputs:
    """Two sentences a row: the token types split at the middle."""
    types = (torch.arange(draw.size.seq) > draw.size.seq // 2).to(torch.int64)
    return {**right_padded(draw), "token_type_ids": types.repeat(draw.size.batch, 1)}


def ids_and_decoder_ids(draw: Draw) -> Inputs:
    return {**ids(draw), "decoder_input_ids": draw_ids(draw, draw.size.target)}


def right_padded_and_decoder_ids(draw: Draw) -> Inputs:
    return {**right_padded(draw), "decoder_input_ids": draw_ids(draw, draw.size.target)}


def filled(cache: Cache, draw: Draw, length: int) -> Cache:
    """The cache after `length` tokens."""
    config, batch = draw.config.get_text_config(decoder=True), draw.size.batch
    heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    for layer in range(config.num_hidden_layers):
        shape = (batch, heads, length, width)
        cache.update(draw.normal(*shape), draw.normal(*shape), layer)
    return cache


def continued(draw: Draw, cache: Cache) -> Inputs:
    """Tokens that follow the `past` ones of the cache, whose first row starts with padding."""
    size = draw.size
    mask = torch.ones(size.batch, size.past + size.seq, dtype=torch.int64)
    mask[0, : size.past // 2] = 0
    return {**ids(draw), "attention_mask": mask, "past_key_values": filled(cache, draw, size.past)}


def continuation(draw: Draw) -> Inputs:
    return continued(draw, DynamicCache(config=draw.config.get_text_config()))


def continuation_in_place(draw: Draw) -> Inputs:
    """The same with a cache of fixed length, which the model writes into."""
    return continued(draw, StaticCache(config=draw.config, max_cache_len=24))


def continued_translation(draw: Draw) -> Inputs:
    """Decoder tokens that follow `past` ones, after the encoder has run."""
    size, config = draw.size, draw.config
    own = filled(DynamicCache(config=config), draw, size.past)
    cross = filled(DynamicCache(config=config), draw, size.seq)
    return {
        "encoder_outputs": BaseModelOutput(draw.normal(size.batch, size.seq, config.d_model)),
        "attention_mask": padding(size.batch, size.seq, left=False),
        "decoder_input_ids": draw_ids(draw, size.target),
        "past_key_values": EncoderDecoderCache(own, cross),
    }


def one_step(draw: Draw) -> Inputs:
    """One token after a state-space model has read others."""
    config, batch = draw.config, draw.size.batch
    cache = DynamicCache(config=config)
    for layer in range(config.num_hidden_layers):
        convolution = draw.normal(batch, config.intermediate_size, config.conv_kernel)
        state = draw.normal(batch, config.intermediate_size, config.state_size)
        cache.update_conv_state(convolution, layer)
        cache.update_recurrent_state(state, layer)
    return {"input_ids": draw_ids(draw, 1), "cache_params": cache}
