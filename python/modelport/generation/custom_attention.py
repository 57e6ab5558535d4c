"""Attention over a static cache by ExecuTorch's kernels for language models.

The kernels are operators of ours in the graph, `modelport::update_cache` and `modelport::cached_attention`, which here
compute in plain PyTorch what the kernels compute. They know of causal masks that begin behind the cached tokens; any
other mask is a matrix. Where a model asks for more (caps on scores, sinks, biases), its own attention computes it."""

from __future__ import annotations

import dataclasses
import functools
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from transformers import masking_utils
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS, causal_mask_function, sdpa_mask
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from ..patches.delta_rule import GATED_DELTA_RULE, gated_delta_rule
from ..symbolic.replaced_attributes import replaced_here

NAME = "modelport_cached"
_BEYOND_THE_KERNEL = ("softcap", "s_aux", "position_bias")
_ATTENTION = (
    "(Tensor query, Tensor key, Tensor value, SymInt start_pos, Tensor? attn_mask=None, float drpout_p=0., "
    "bool is_causal=False, float? scale=None) -> Tensor"
)


@functools.cache
def define_operators() -> Any:
    """Known to torch from then on."""
    library = torch.library.Library("modelport", "DEF")
    library.define("update_cache(Tensor value, Tensor cache, SymInt start_pos) -> Tensor")
    library.define(f"cached_attention{_ATTENTION}")
    for name in ("gated_delta_rule", "linear_attention"):  # by plain operators or ExecuTorch's, by onnxruntime's
        library.define(f"{name}{GATED_DELTA_RULE}")
        library.impl(name, gated_delta_rule, "CompositeExplicitAutograd")
    library.impl("update_cache", _update_cache, "CompositeExplicitAutograd")
    library.impl("cached_attention", _cached_attention, "CompositeExplicitAutograd")
    return library


def _update_cache(value: torch.Tensor, cache: torch.Tensor, start_pos: int) -> torch.Tensor:
    updated = cache.clone()
    updated[:, start_pos : start_pos + value.shape[1]] = value
    return updated


def _cached_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    start_pos: int,
    attn_mask: torch.Tensor | None = None,
    drpout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
) -> torch.Tensor:
    seen = key.shape[1]
    if attn_mask is None:  # else it says for the whole cache what is seen of it
        seen = start_pos + query.shape[1]
    if is_causal:
        positions = torch.arange(seen, device=query.device)
        attn_mask = positions <= positions[start_pos:, None]
    q, k, v = (tensor.transpose(1, 2) for tensor in (query, key[:, :seen], value[:, :seen]))
    attend = torch.nn.functional.scaled_dot_product_attention
    result = attend(q, k, v, attn_mask=attn_mask, dropout_p=drpout_p, scale=scale, enable_gqa=True)
    return result.transpose(1, 2).contiguous()


def update_cache(value: torch.Tensor, cache: torch.Tensor, start: Any) -> torch.Tensor:
    """The cache, [1, length, heads, width], with these tokens from `start` on."""
    define_operators()
    return torch.ops.modelport.update_cache(value, cache, start)


@dataclasses.dataclass(frozen=True)
class CacheSettings:
    """How long the cache is, and which kernels serve it."""

    length: int
    custom_sdpa: bool = False
    custom_cache: bool = False
    past_alone: bool = False  # attention gets what is written of the cache, as `generate` has it, and no mask of ours

    @property
    def length_first(self) -> bool:
        return self.custom_sdpa or self.custom_cache


class CachedCall:
    """One call of a decoder: where its tokens stand, and what its layers have in common."""

    def __init__(self, positions: torch.Tensor, settings: CacheSettings):
        self.positions, self.settings = positions, settings
        self.start = positions[0]
        self._cached: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        self._masks: dict[int, tuple[Any, torch.Tensor]] = {}

    @functools.cached_property
    def start_number(self) -> Any:
        return self.start.item()

    def read_start(self) -> None:
        """Before anything else is read of the data."""
        assert self.start_number >= 0

    @property
    def seen(self) -> Any:
        """How many tokens there are before those of this call."""
        return self.start_number if self.settings.past_alone else self.start

    def written(self, cache: torch.Tensor) -> torch.Tensor:
        """What the layers get of a cache, heads first."""
        if not self.settings.past_alone:
            return self.known(cache)
        return cache.narrow(2, 0, self.start_number + self.positions.shape[0])

    def known(self, cache: torch.Tensor) -> torch.Tensor:
        self._cached[id(cache)] = cache, cache
        return cache

    def as_heads_first(self, cache: torch.Tensor) -> torch.Tensor:
        """A view as models expect it, of which `cache_of` knows the cache."""
        view = cache.transpose(1, 2)
        self._cached[id(view)] = view, cache
        return view

    def cache_of(self, view: torch.Tensor) -> torch.Tensor | None:
        found = self._cached.get(id(view))
        return None if found is None else found[1]

    def matrix(self, mask: torch.Tensor | None) -> torch.Tensor:
        """A mask of truths, or the causal one, as numbers to be added: made once for all layers."""
        if id(mask) not in self._masks:
            hidden = torch.full((), float("-inf"), dtype=torch.float32)
            seen = (self.causal() if mask is None else mask)[0, 0]
            self._masks[id(mask)] = mask, torch.where(seen, torch.zeros((), dtype=torch.float32), hidden)
        return self._masks[id(mask)][1]

    def causal(self) -> torch.Tensor:
        """The mask that kernels need not be given: [1, 1, tokens, length]."""
        return (torch.arange(self.settings.length) <= self.positions[:, None])[None, None]


_call: ContextVar[CachedCall | None] = ContextVar("the call of a decoder with a static cache", default=None)


@contextmanager
def calling(call: CachedCall) -> Iterator[None]:
    token = _call.set(call)
    try:
        yield
    finally:
        _call.reset(token)


@contextmanager
def attention_replaced(model: Any) -> Iterator[None]:
    """While it lasts, layers that ask for attention by its name get ours: a kernel, or one that reads a cache as it
    lies."""
    if not takes_custom(model):
        # One token needs a mask as well: it hides the places of the cache that are behind it.
        with replaced_here(masking_utils, "_ignore_causal_mask_sdpa", lambda _: lambda *_args, **_more: False):
            yield
        return
    define_operators()
    ALL_ATTENTION_FUNCTIONS.register(NAME, _attention)
    ALL_MASK_ATTENTION_FUNCTIONS.register(NAME, _mask)
    config = model.config.get_text_config(decoder=True)
    before = config._attn_implementation
    config._attn_implementation = NAME
    try:
        yield
    finally:
        config._attn_implementation = before


def takes_custom(model: Any) -> bool:
    """Whether the model asks for attention by its name."""
    return bool(getattr(model, "_supports_attention_backend", False))


def _mask(mask_function: Any = causal_mask_function, attention_mask: Any = None, **more: Any) -> torch.Tensor | None:
    if mask_function is causal_mask_function and attention_mask is None and _call.get() is not None:
        return None
    more["allow_is_causal_skip"] = False
    return sdpa_mask(mask_function=mask_function, attention_mask=attention_mask, **more)


def _attention(
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    **more: Any,
) -> tuple[torch.Tensor, Any]:
    call = _call.get()
    keys, values = (None, None) if call is None else (call.cache_of(key), call.cache_of(value))
    kept = keys is not None and values is not None
    if call is None or not (kept or _made_of_cache(module, key, call)):  # it attends to something else than the cache
        return _own_attention(module, query, key, value, attention_mask, scaling, more)
    if not _is_plain(attention_mask, more):
        mask = call.causal() if attention_mask is None else attention_mask
        return _own_attention(module, query, key, value, mask, scaling, more)
    one_width = query.shape[-1] == key.shape[-1] == value.shape[-1]
    if not call.settings.custom_sdpa or not kept or not one_width:
        return _grouped_attention(query, key, value, call.matrix(attention_mask), scaling), None
    added = None if attention_mask is None else call.matrix(attention_mask)
    attend = torch.ops.modelport.cached_attention
    heads = query.transpose(1, 2)
    return attend(heads, keys, values, call.start_number, added, 0.0, added is None, scaling), None


def _made_of_cache(module: Any, key: torch.Tensor, call: CachedCall) -> bool:
    """Whether keys come from the cache and are not it: repeated for their heads, or made of what is cached of them."""
    return bool(getattr(module, "is_causal", False)) and key.shape[-2] == call.settings.length


def _is_plain(mask: torch.Tensor | None, more: dict[str, Any]) -> bool:
    """Whether attention is all that is asked for, with one mask for all heads."""
    if any(more.get(name) is not None for name in _BEYOND_THE_KERNEL):
        return False
    return mask is None or (mask.dtype == torch.bool and mask.dim() == 4 and mask.shape[:2] == (1, 1))


def _grouped_attention(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, added: torch.Tensor, scaling: float | None
) -> torch.Tensor:
    """Keys and values are read where they lie: queries of one group are rows of one matrix, and it is they that are
    transposed, not the cache."""
    _, heads, tokens, width = query.shape
    _, groups, length, _ = key.shape
    scale = width**-0.5 if scaling is None else scaling
    rows = (query * scale).reshape(groups, heads // groups * tokens, width)
    scores = torch.bmm(key.reshape(key.shape[1:]), rows.transpose(1, 2)).transpose(1, 2)
    scores = scores.reshape(groups, heads // groups, tokens, length) + added  # half types become float here
    weights = torch.softmax(scores, dim=-1).to(query.dtype).reshape(groups, heads // groups * tokens, length)
    found = torch.bmm(weights, value.reshape(value.shape[1:]))
    return found.reshape(1, heads, tokens, value.shape[3]).transpose(1, 2).contiguous()  # models view it


def _own_attention(
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    scaling: float | None,
    more: dict[str, Any],
) -> tuple[torch.Tensor, Any]:
    eager = getattr(sys.modules[type(module).__module__], "eager_attention_forward", None)
    if eager is None or all(more.get(name) is None for name in _BEYOND_THE_KERNEL):
        return sdpa_attention_forward(module, query, key, value, mask, scaling=scaling, **more)
    if mask is not None and mask.dtype == torch.bool:
        hidden = torch.full((), torch.finfo(query.dtype).min, dtype=query.dtype)
        mask = torch.where(mask, torch.zeros((), dtype=query.dtype), hidden)
    return eager(module, query, key, value, mask, scaling=scaling, **more)
