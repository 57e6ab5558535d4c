"""Inputs of models that read tokens: ids, masks with padding, decoder ids, caches."""

from __future__ import annotations

from typing import Any

import torch
from transformers import DynamicCache

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


def continuation(draw: Draw) -> Inputs:
    """Tokens that follow a cache of `past` tokens, with left padding inside the cached part."""
    config, size = draw.config.get_text_config(), draw.size
    heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    cache = DynamicCache(config=config)
    for layer in range(config.num_hidden_layers):
        shape = (size.batch, heads, size.past, width)
        cache.update(draw.normal(*shape), draw.normal(*shape), layer)
    mask = torch.ones(size.batch, size.past + size.seq, dtype=torch.int64)
    mask[0, : size.past // 2] = 0
    return {**ids(draw), "attention_mask": mask, "past_key_values": cache}
