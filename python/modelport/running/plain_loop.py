"""The loop of `generate` without beams. That of transformers is for models of any kind, and takes a tenth of the time
of a small model between two steps. The same tokens, random numbers, streamers and criteria."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from transformers.generation.stopping_criteria import EosTokenCriteria, MaxLengthCriteria
from transformers.generation.utils import GenerationMixin

from .cache import SessionCache
from .decoder import Decoder
from .inputs import Call, decoder_feeds
from .parts import Parts
from .steps_in_place import StepsInPlace, can_step

_FIRST_TOKENS = 256  # that a text has room for
_NOBODY: Any = np.False_  # has come to an end
_KNOWN = frozenset(("attention_mask", "position_ids", "logits_to_keep", "past_key_values", "use_cache"))
# What a class may do in a way of its own; then the loop is transformers'.
_HOOKS = ("prepare_inputs_for_generation", "_update_model_kwargs_for_generation")


def fits(model: Any, parts: Parts, config: Any, given: Mapping[str, Any]) -> bool:
    """Whether tokens, their mask and a cache of ours are all there is; `config` is of the generation."""
    there = {name for name, value in given.items() if value is not None and value is not False}
    tensors = [given[name] for name in ("attention_mask", "position_ids") if name in there]
    return (
        isinstance(parts.decoder, Decoder)
        and parts.encoder is None
        and parts.embedding is None
        and not parts.encoders.outputs
        and there <= _KNOWN
        and "use_cache" in there
        and isinstance(given.get("past_key_values"), SessionCache)
        and all(tensor.dim() == 2 for tensor in tensors)
        and (config._pad_token_tensor is None or bool((config._pad_token_tensor >= 0).all()))
        and not (config.return_dict_in_generate or config.is_assistant or config.prefill_chunk_size)
        and all(getattr(type(model), name) is getattr(GenerationMixin, name) for name in _HOOKS)
    )


def generated(
    model: Any,
    parts: Parts,
    input_ids: torch.Tensor,
    given: Mapping[str, Any],
    settings: tuple[Any, Any, Any, Any],
) -> torch.Tensor:
    """The prompt and what follows it; the settings are processors, criteria, the generation's config and a streamer."""
    processors, criteria, config, streamer = settings
    steps, text, ends = _Steps(model, parts.decoder, given), _Text(input_ids), _Ends(criteria)
    padding = None if config._pad_token_tensor is None else config._pad_token_tensor.numpy()
    unfinished: Any = np.ones(len(input_ids), np.int64)
    chosen = _drawn if config.do_sample else _best
    logits = steps.prompt(input_ids)
    while True:
        if processors:  # who may keep what they get
            logits = processors(text.ids, torch.from_numpy(logits).clone()).numpy()
        tokens = chosen(logits)
        if ends.by_tokens:  # a row that has ended goes on with padding
            tokens = tokens * unfinished + padding * (1 - unfinished)
        text.add(tokens)
        if streamer is not None:
            streamer.put(torch.from_numpy(tokens))
        ended = ends(text, tokens)
        if ended is not _NOBODY:
            unfinished &= ~ended
            if not unfinished.any():
                break
        logits = steps.after(tokens)
    if streamer is not None:
        streamer.end()
    return text.ids


# What is done between two steps is done on arrays: see StepsInPlace.


def _drawn(scores: Any) -> Any:
    shares = torch.nn.functional.softmax(torch.from_numpy(scores), dim=-1)
    return torch.multinomial(shares, num_samples=1).squeeze(1).numpy()


def _best(scores: Any) -> Any:
    """torch's own takes ten times as long for a row as long as a vocabulary. Both give the first of equal ones."""
    return scores.argmax(-1)


class _Text:
    """The prompt and what follows it, in memory that has room for more: tensors are made for those who ask."""

    def __init__(self, prompt: torch.Tensor):
        self.length = prompt.shape[1]
        self._room: Any = prompt.numpy()

    def add(self, tokens: Any) -> None:
        if self.length == self._room.shape[1]:
            more = np.empty((len(self._room), max(self.length, _FIRST_TOKENS)), np.int64)
            self._room = np.concatenate([self._room, more], axis=1)
        self._room[:, self.length] = tokens
        self.length += 1

    @property
    def ids(self) -> torch.Tensor:
        """Who keeps them keeps what they are now."""
        return torch.from_numpy(np.ascontiguousarray(self._room[:, : self.length]))


class _Ends:
    """Which rows have come to their end. A length and tokens that end a text are all that most calls ask for, and need
    no tensors; other criteria, and a length that is worth a warning, are asked themselves."""

    def __init__(self, criteria: Any):
        self._criteria = criteria
        self.by_tokens = any(hasattr(criterion, "eos_token_id") for criterion in criteria)
        lengths = [c for c in criteria if type(c) is MaxLengthCriteria]
        tokens = [c.eos_token_id.flatten().numpy() for c in criteria if type(c) is EosTokenCriteria]
        self._most = min((c.max_length for c in lengths), default=math.inf)
        self._warned = min((c.max_position_embeddings or math.inf for c in lengths), default=math.inf)
        self._tokens = np.concatenate(tokens) if tokens else None
        self._is_plain = len(lengths) + len(tokens) == len(criteria)

    def __call__(self, text: _Text, tokens: Any) -> Any:
        if not self._is_plain or text.length > self._warned:
            return self._criteria(text.ids, None).numpy()
        if text.length >= self._most:
            return np.True_
        return _NOBODY if self._tokens is None else (tokens[:, None] == self._tokens).any(1)


class _Steps:
    """Logits of the last token, an array of fp32, call after call; they are good until the next one."""

    def __init__(self, model: Any, decoder: Any, given: Mapping[str, Any]):
        self._model, self._decoder = model, decoder
        self._cache = given["past_key_values"]
        self._mask, self._positions = given.get("attention_mask"), given.get("position_ids")
        self._in_place: StepsInPlace | None = None

    def prompt(self, ids: torch.Tensor) -> Any:
        """`ids` are the whole text, or what is new of it, where the mask is longer."""
        whole = self._mask is None or self._mask.shape[1] == ids.shape[1]
        fresh = ids[:, self._cache.get_seq_length() :] if whole else ids
        positions = None if self._positions is None else self._positions[:, -fresh.shape[1] :]
        given = {"attention_mask": self._mask, "position_ids": positions, "past_key_values": self._cache}
        logits = self._model(fresh, **given, use_cache=True, logits_to_keep=1).logits[:, -1].float()
        if can_step(self._decoder):
            self._in_place = StepsInPlace(self._decoder, self._cache, self._mask, positions)
        return logits.numpy()

    def after(self, tokens: Any) -> Any:
        if self._in_place is not None:
            return self._in_place(tokens)
        batch = len(tokens)
        given = {"input_ids": torch.from_numpy(tokens)[:, None]}
        if self._mask is not None:
            given["attention_mask"] = self._mask = torch.cat([self._mask, self._mask.new_ones(batch, 1)], dim=-1)
        if self._positions is not None:
            given["position_ids"] = self._positions = self._positions[:, -1:] + 1
        call = Call(given, batch, 1, self._cache.get_seq_length())
        feeds = decoder_feeds(self._decoder.inputs(call.past), call, encoder_decoder=False)
        return self._decoder.run(feeds, call, self._cache)["logits"][:, -1].float().numpy()
