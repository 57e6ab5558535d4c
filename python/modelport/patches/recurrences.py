"""Recurrences of particular models without their loops over time, which would pin the length of the text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .scans import linear_recurrence


def rwkv_attention(_original: Callable[..., Any]) -> Callable[..., Any]:
    """For `rwkv_linear_attention_cpu`, which goes from token to token: an average of the values before, weighted by
    exp(key) and a decay. Sums are kept relative to the largest weight, so that they do not overflow."""

    def rwkv_linear_attention_cpu(
        time_decay: torch.Tensor,
        time_first: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        state: Any = None,
        return_state: bool = False,
    ) -> tuple[torch.Tensor, Any]:
        key, output_type = key.float(), key.dtype
        start = torch.zeros_like(key[:, 0])
        total, weight, largest = (start, start, start - 1e38) if state is None else state
        decay = -torch.exp(time_decay).expand_as(key)
        # Sums are relative to the largest exponent so far.
        top = torch.ops.modelport.maximum_recurrence(decay, key, largest.float(), 1)
        top_before = torch.cat([largest.float()[:, None], top[:, :-1]], dim=1)
        kept, fresh = torch.exp(top_before + decay - top), torch.exp(key - top)
        start = torch.stack([total, weight]).float()
        sums = linear_recurrence(kept.expand(2, *kept.shape), torch.stack([fresh * value.float(), fresh]), start, 2)
        total_before, weight_before = torch.cat([start[:, :, None], sums[:, :, :-1]], dim=2).unbind()
        own = key + time_first
        most = torch.maximum(top_before, own)
        before, now = torch.exp(top_before - most), torch.exp(own - most)
        output = (before * total_before + now * value) / (before * weight_before + now)
        total, weight = sums[:, :, -1].unbind()
        final = [total, weight, top[:, -1]] if return_state or state is not None else None
        return output.to(output_type), final

    return rwkv_linear_attention_cpu


def padded_without_asking(original: Callable[..., Any]) -> Callable[..., Any]:
    """For `update_conv_state` of a cache, which pads a prompt that is shorter than the convolution is wide: by nothing
    where it is not, so that one graph serves both."""

    def update_conv_state(
        self: Any, conv_states: torch.Tensor, state_idx: int = 0, conv_kernel_size: int | None = None, **kwargs: Any
    ) -> torch.Tensor:
        if conv_kernel_size is not None and not self.has_previous_state[state_idx] and not self.record_past:
            lacking = torch.sym_max(conv_kernel_size - conv_states.shape[-1], 0)
            conv_states = torch.nn.functional.pad(conv_states, (lacking, 0))
        return original(self, conv_states, state_idx, conv_kernel_size=conv_kernel_size, **kwargs)

    return update_conv_state


def mlstm_in_one_chunk(original: Callable[..., Any]) -> Callable[..., Any]:
    """For the backend of xLSTM, which goes from chunk to chunk and through what is left over from token to token: all
    of the text is one chunk, whose tokens see each other as in attention."""

    def forward(
        self: Any,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        igate: torch.Tensor,
        fgate: torch.Tensor,
        c_initial: torch.Tensor | None = None,
        n_initial: torch.Tensor | None = None,
        m_initial: torch.Tensor | None = None,
        return_last_states: bool | None = None,
        mode: str | None = None,
    ) -> Any:
        if "inference" not in (mode or self.config.mode):
            initial = (c_initial, n_initial, m_initial)
            return original(self, query, key, value, igate, fgate, *initial, return_last_states, mode)
        if c_initial is None or n_initial is None or m_initial is None:
            keys = key.float()
            n_initial = torch.zeros_like(keys[:, :, 0])
            c_initial = n_initial[..., None] * torch.zeros_like(value[:, :, 0]).float()[..., None, :]
            m_initial = n_initial[..., :1]
        return _chunk(query, key, value, igate, fgate, (c_initial, n_initial, m_initial), self.config.eps)

    return forward


def _chunk(query: Any, key: Any, value: Any, igate: Any, fgate: Any, initial: Any, eps: float) -> Any:
    cell, norm, top = initial
    decay = torch.nn.functional.logsigmoid(fgate.float()).cumsum(-1)
    place = torch.arange(key.shape[-2], device=key.device)
    exponents = decay[..., :, None] - decay[..., None, :] + igate[..., None, :]
    exponents = exponents.masked_fill(place > place[:, None], float("-inf"))
    from_before = decay + top
    most = torch.maximum(from_before, exponents.amax(-1))
    weights, before = torch.exp(exponents - most[..., None]), torch.exp(from_before - most)[..., None]
    scaled = query * query.shape[-1] ** -0.5
    scores = (scaled @ key.transpose(-2, -1)) * weights
    total = (scaled * before) @ cell.to(query.dtype) + scores @ value
    weight = (scaled * before) @ norm[..., None].to(query.dtype) + scores.sum(-1, keepdim=True)
    hidden = total / (torch.maximum(weight.abs(), torch.exp(-most)[..., None]) + eps)
    kept, weighted = before[..., -1:, :], key * weights[..., -1, :, None]
    cell = kept * cell + weighted.transpose(-2, -1) @ value
    norm = kept[..., 0] * norm + weighted.sum(-2)
    return hidden.to(query.dtype), (cell, norm, most[..., -1:])
