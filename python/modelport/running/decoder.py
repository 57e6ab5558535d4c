"""The part that gives the next token: one file for the prompt and for every step, or one for each."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

import torch
from transformers.cache_utils import Cache, EncoderDecoderCache
from transformers.generation.utils import ALL_CACHE_NAMES

from ..base.errors import problem
from ..runtimes.runner import Runner, Slot
from .cache import Kept, SessionCache
from .inputs import Call

_PAST = re.compile(r"past_key_values|past")


class _Calls(NamedTuple):
    """How one file is called: its inputs and outputs that are no cache."""

    session: Runner
    inputs: list[Slot]
    outputs: list[str]


class Decoder:
    """Runs the file that fits and keeps the cache."""

    room: int | None = None  # the cache grows

    def __init__(self, step: Runner, prefill: Runner | None = None):
        """`prefill` reads the prompt where `step` can only go on after it."""
        self.memory = step.memory
        kept = [_kept(slot, step, prefill) for name, slot in step.inputs.items() if name.startswith("past")]
        self._own = [row for row in kept if not row.crosses]
        self._cross = [row for row in kept if row.crosses]
        self._step = self._calls(step, kept)
        self._prefill = None if prefill is None else self._calls(prefill, kept)

    @staticmethod
    def _calls(session: Runner, kept: Sequence[Kept]) -> _Calls:
        pasts, presents = {row.past.name for row in kept}, {row.present for row in kept}
        free = [slot for name, slot in session.inputs.items() if name not in pasts]
        return _Calls(session, free + session.flags, [name for name in session.outputs if name not in presents])

    @property
    def has_cache(self) -> bool:
        return bool(self._own)

    def new_cache(self) -> Cache:
        own = SessionCache(self._own, self.memory)
        return EncoderDecoderCache(own, SessionCache(self._cross, self.memory)) if self._cross else own

    @functools.cached_property
    def plain_name(self) -> str | None:
        """What the model calls its state where that is a list of tensors, and no object: `past_state.0` is of state."""
        found = {name for row in self._own if (name := row.past.name.removeprefix("past_").split(".")[0])}
        lists = [name for name in found if name in ALL_CACHE_NAMES and name not in ("past_key_values", "cache_params")]
        return lists[0] if len(found) == len(lists) == 1 else None

    def inputs(self, past: int) -> list[Slot]:
        """What the call after so many tokens takes besides the cache."""
        return self._next(past).inputs

    def _next(self, past: int) -> _Calls:
        return self._step if past or self._prefill is None else self._prefill

    def run(self, inputs: Mapping[str, torch.Tensor], call: Call, cache: Cache | None) -> dict[str, torch.Tensor]:
        """One call. The cache is as it is afterwards; without one nothing is kept."""
        own, cross = parts_of(self.new_cache() if cache is None else cache)
        session, _, outputs = self._next(own.seen)
        feeds = {name: self.memory.to_value(tensor) for name, tensor in inputs.items()}
        if session is self._step.session:
            for part in (own, cross):
                feeds.update(zip(part.names, part.start(call.batch), strict=True))
        # What crosses is complete after the first call, and some files give nothing of use for it from then on.
        filled = [] if cache is None else [own] if cross.seen or not cross.kept else [own, cross]
        results = session.run(feeds, [*outputs, *(name for part in filled for name in part.presents)])
        start = len(outputs)
        for part in filled:
            part.fill(results[start : start + len(part.presents)], call.tokens)
            start += len(part.presents)
        return {name: self.memory.to_tensor(value) for name, value in zip(outputs, results, strict=False)}


def parts_of(cache: Cache) -> tuple[SessionCache, SessionCache]:
    """The decoder's own, and what it has of the encoder, which is empty for a decoder alone."""
    if isinstance(cache, EncoderDecoderCache):
        own, cross = cache.self_attention_cache, cache.cross_attention_cache
    else:
        own, cross = cache, SessionCache([], cast("Any", getattr(cache, "memory", None)))
    if not isinstance(own, SessionCache) or not isinstance(cross, SessionCache):
        raise problem(
            "E0314",
            f"this model cannot go on from a {type(own).__name__}: its own cache is in the runtime's memory",
            "leave past_key_values out; generate(..., return_dict_in_generate=True) gives the cache to go on with",
        )
    return own, cross


def _kept(slot: Slot, step: Runner, prefill: Runner | None) -> Kept:
    """How an input called past... goes from call to call."""
    names = [_PAST.sub("present", slot.name, count=1), slot.name.replace("past", "present", 1)]
    known = [*step.outputs, *(prefill.outputs if prefill is not None else ())]
    present = next((name for name in names if name in known), None)
    if present is None:
        raise problem(
            "E0103", f"{step.path}: it takes {slot.name} and gives no {names[0]} to go on with", "export it again"
        )
    symbols = [axis for axis, size in enumerate(slot.shape) if isinstance(size, str)]
    named = [axis for axis in symbols if "batch" in str(slot.shape[axis])]
    # A tensor with no free axis has no rows where others have them: it is a count.
    free = any(isinstance(size, str) for other in step.inputs.values() for size in other.shape)
    batch = named[0] if named else None if free and not symbols else 0
    growing = [axis for axis in symbols if axis != batch]
    return Kept(slot, present, batch, growing[0] if growing else None)
