"""A cache of fixed size in buffers of a module, so that a program keeps it in its own memory.

Tokens are written at the positions that the caller names, and the mask hides what lies behind them. Layers that look
back a window only keep the whole past all the same: the mask makes the window. The states of linear attention begin as
zeros wherever the first position is 0."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from transformers.cache_utils import Cache, CacheLayerMixin, LinearAttentionCacheLayerMixin

from .custom_attention import CachedCall, update_cache

Shapes = dict[str, list[torch.Tensor]]  # of one layer: keys, values, conv_states, recurrent_states


def shapes_of(cache: Cache) -> list[Shapes]:
    """What each layer keeps, as tensors of the right types and sizes; layers that share with others keep nothing."""
    return [{name: found for name in _KEPT if (found := list(_tensors(layer, name)))} for layer in cache.layers]


_KEPT = ("keys", "values", "conv_states", "recurrent_states")


def _tensors(layer: Any, name: str) -> Iterator[torch.Tensor]:
    kept = getattr(layer, name, None)
    states = kept.values() if isinstance(kept, dict) else kept if isinstance(kept, list | tuple) else [kept]
    yield from (state for state in states if isinstance(state, torch.Tensor))


class StaticCache(Cache):
    """The layers of one call, over the buffers of a module."""

    def __init__(self, layers: list[Any], call: CachedCall):
        super().__init__(layers=layers)
        self._call = call

    def get_seq_length(self, layer_idx: int = 0) -> Any:
        return self._call.seen


class StaticKeys(CacheLayerMixin):
    """Keys and values: [1, heads, length, width], or [1, length, heads, width] as kernels of ExecuTorch take them."""

    is_compileable = False
    is_sliding = False

    def __init__(self, keys: torch.Tensor, values: torch.Tensor, call: CachedCall):
        super().__init__()
        self.keys, self.values, self._call = keys, values, call
        self.is_initialized = True

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        """The buffers are there from the start."""

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *_args: Any, **_kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        assert self.keys is not None and self.values is not None
        return self._written(self.keys, key_states), self._written(self.values, value_states)

    def _written(self, cache: torch.Tensor, states: torch.Tensor) -> torch.Tensor:
        call = self._call
        if not call.settings.length_first:
            return call.written(_put(cache, [None, None, call.positions], states.to(cache.dtype)))
        states = states.transpose(1, 2).to(cache.dtype)
        if call.settings.custom_cache:
            cache.copy_(update_cache(states, cache, call.start_number))
        else:
            _put(cache, [None, call.positions], states)
        return call.as_heads_first(cache)

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        past_alone = self._call.settings.past_alone
        return self._call.seen + query_length if past_alone else self._call.settings.length, 0

    def get_seq_length(self) -> Any:
        return self._call.seen

    def get_max_length(self) -> int:
        return self._call.settings.length


def _put(cache: torch.Tensor, places: list[Any], states: torch.Tensor) -> torch.Tensor:
    """Not `cache[places] = states`, which asks whether there is one token."""
    return torch.ops.aten.index_put_(cache, places, states)


class StaticStates(LinearAttentionCacheLayerMixin):
    """States of a convolution and of a recurrence, which a first token finds at zero."""

    is_compileable = False

    def __init__(self, conv: list[torch.Tensor], recurrent: list[torch.Tensor], call: CachedCall):
        super().__init__(number_of_states=max(len(conv), len(recurrent)))
        for state in (*conv, *recurrent):
            state.copy_(torch.where(call.start == 0, torch.zeros_like(state), state))
        self.conv_states, self.recurrent_states = conv, recurrent  # models write to them, too
        self.has_previous_state = [True] * max(len(conv), len(recurrent))
        self.record_past = True  # models then do the same for one token as for several

    def lazy_initialization(self, *_args: Any, **_kwargs: Any) -> None:
        """The buffers are there from the start."""

    def update_conv_state(self, conv_states: torch.Tensor, state_idx: int = 0, **_kwargs: Any) -> torch.Tensor:
        state = self.conv_states[state_idx]
        whole = torch.cat([state, conv_states], dim=-1)
        state.copy_(whole[..., -state.shape[-1] :])
        return whole

    def update_recurrent_state(
        self, recurrent_states: torch.Tensor, state_idx: int = 0, **_kwargs: Any
    ) -> torch.Tensor:
        return self.recurrent_states[state_idx].copy_(recurrent_states)


class StaticKeysAndStates(StaticStates, StaticKeys):
    """Both in one layer."""

    def __init__(
        self,
        keys: torch.Tensor,
        values: torch.Tensor,
        conv: list[torch.Tensor],
        recurrent: list[torch.Tensor],
        call: CachedCall,
    ):
        StaticStates.__init__(self, conv, recurrent, call)
        StaticKeys.__init__(self, keys, values, call)


def layer_over(buffers: Shapes, call: CachedCall) -> Any:
    conv, recurrent = buffers.get("conv_states", []), buffers.get("recurrent_states", [])
    if "keys" not in buffers:
        return StaticStates(conv, recurrent, call) if conv or recurrent else SharedKeys(call)
    keys, values = buffers["keys"][0], buffers["values"][0]
    if conv or recurrent:
        return StaticKeysAndStates(keys, values, conv, recurrent, call)
    return StaticKeys(keys, values, call)


class SharedKeys(StaticKeys):
    """Of a layer that takes those of another."""

    def __init__(self, call: CachedCall):
        CacheLayerMixin.__init__(self)
        self._call = call


class PassingKeys(CacheLayerMixin):
    """Of cross-attention that keeps nothing: what is made in a call is used in it."""

    is_compileable = False
    is_sliding = False

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        """There is nothing to make."""

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *_args: Any, **_kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        return key_states, value_states

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return query_length, 0

    def get_seq_length(self) -> int:
        return 0

    def get_max_length(self) -> int:
        return -1
