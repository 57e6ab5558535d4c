"""One token after another on a cache in place: tokens, positions and logits stay where they are from step to step."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from .cache_in_place import InPlaceCache, InPlaceDecoder

_FIRST_STEPS = 256
_AHEAD = 32  # steps that are prepared at once
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
        self._ids: Any = np.empty((rows, 1), np.int64)
        self._next_ids = self._ids[:, 0]
        self._has_positions = "position_ids" in decoder.free_inputs
        self._positions = last.astype(np.int64)
        self._kept: list[Any] = []  # buffers that all this is bound with
        self._bound: Any = None
        self._runs = 0  # of what is bound: one more is another's
        self._masks: list[Any] = []  # of the next steps, the last one first
        self._tokens = 0  # in the cache, when the next of them is due
        self._scores: Any = None
        self._logits: torch.Tensor | None = None  # of another type

    def __call__(self, tokens: Any) -> Any:
        """[rows, vocabulary] in fp32, good until the next call; both are arrays."""
        self._next_ids[...] = tokens
        if self._has_positions:
            self._positions += 1
        if not (self._masks and self._is_as_it_was()):
            self._prepare()
        if self._masks:
            self._decoder.run_again(self._bound, self._masks.pop())
            self._runs += 1
        else:
            self._bind()
        self._cache.add_one()
        self._tokens += 1
        return self._scores if self._logits is None else self._logits.float().numpy()

    def _is_as_it_was(self) -> bool:
        """Whether nobody has run the file or changed the cache since the last step."""
        return self._bound.runs == self._runs and self._cache.stands(self._tokens, self._kept)

    def _prepare(self) -> None:
        """The cache, and masks where it is still bound."""
        cache, self._masks = self._cache, []
        steps = cache.prepare_steps(len(self._ids), _AHEAD)
        self._tokens = cache.get_seq_length()
        if self._bound is not None and self._is_as_it_was():
            self._masks = self._decoder.masks(self._bound, (self._mask_after(i) for i in range(steps)))
            self._masks.reverse()

    def _bind(self) -> None:
        """A step by which all is bound anew."""
        given = {"input_ids": self._ids, "position_ids": self._positions, "attention_mask": self._mask_after(0)}
        inputs = {name: torch.from_numpy(given[name]) for name in self._decoder.free_inputs}
        self._kept = self._cache.bound()
        results, self._bound = self._decoder.run_bound(inputs, self._kept)
        self._runs, logits = self._bound.runs, results["logits"][:, -1]
        self._scores, self._logits = (logits.numpy(), None) if logits.dtype == torch.float32 else (None, logits)

    def _mask_after(self, steps: int) -> Any:
        """Of the step after so many. New tokens are tokens in every row."""
        tokens = self._tokens + 1 + steps
        if tokens > self._mask.shape[1]:
            self._mask = np.concatenate([self._mask, np.ones_like(self._mask)], axis=1)
        return np.ascontiguousarray(self._mask[:, :tokens])
