"""One token after another on a cache in place: tokens, positions and logits stay where they are from step to step."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from .cache_in_place import InPlaceCache, InPlaceDecoder

_FIRST_STEPS = 256
_INPUTS = frozenset(("input_ids", "attention_mask", "position_ids"))


def can_step(decoder: Any) -> bool:
    """Whether the file takes nothing that would have to be made anew for each token."""
    return isinstance(decoder, InPlaceDecoder) and decoder.free_inputs <= _INPUTS and not decoder.keeps_state


class StepsInPlace:
    """The logits of each next token, after a prompt that the decoder has read into the cache. What a step does besides
    running the file it does on arrays: after such a run nothing is in a cache of the processor any more, and every
    operator of torch takes longer than its work is worth."""

    def __init__(
        self, decoder: InPlaceDecoder, cache: InPlaceCache, mask: torch.Tensor | None, positions: torch.Tensor | None
    ):
        """`mask` and `positions` are the prompt's; without them there is no padding."""
        self._decoder, self._cache = decoder, cache
        rows, seen = cache.batch_size, cache.get_seq_length()
        self._mask: Any = np.ones((rows, seen + _FIRST_STEPS), np.int64)
        if mask is not None:
            self._mask[:, :seen] = mask.numpy()
        last = self._mask[:, :seen].sum(1, keepdims=True) - 1 if positions is None else positions[:, -1:].numpy()
        self._inputs = {"input_ids": np.empty((rows, 1), np.int64), "position_ids": last.astype(np.int64)}
        self._kept: list[Any] | None = None  # buffers that all this is bound with
        self._bound: Any = None
        self._runs = 0  # of what is bound: one more is another's
        self._logits = torch.empty(0)

    def __call__(self, tokens: Any) -> torch.Tensor:
        """[rows, vocabulary], good until the next call; `tokens` are an array."""
        decoder, cache = self._decoder, self._cache
        cache.prepare(len(tokens), 1)
        self._inputs["input_ids"][:, 0] = tokens
        self._inputs["position_ids"] += 1
        mask, kept = self._next_mask(), cache.bound()
        if self._kept is kept and self._bound.runs == self._runs:
            decoder.run_again(self._bound, mask)
        else:
            given = self._inputs | {"attention_mask": mask}
            inputs = {name: torch.from_numpy(given[name]) for name in decoder.free_inputs}
            results, self._bound = decoder.run_bound(inputs, kept)
            self._kept, self._logits = kept, results["logits"][:, -1]
        self._runs = self._bound.runs
        cache.add_one()
        return self._logits

    def _next_mask(self) -> Any:
        """New tokens are tokens in every row."""
        tokens = self._cache.get_seq_length() + 1
        if tokens > self._mask.shape[1]:
            self._mask = np.concatenate([self._mask, np.ones_like(self._mask)], axis=1)
        return np.ascontiguousarray(self._mask[:, :tokens])
