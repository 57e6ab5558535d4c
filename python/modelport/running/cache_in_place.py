"""Caches that a file writes into: buffers of full length, allocated once, which are its inputs and its outputs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import torch
from transformers.cache_utils import Cache, EncoderDecoderCache

from ..artifacts.artifact import ALL_LOGITS, Artifact
from ..base.errors import problem
from ..runtimes.runner import Memory, Runner
from .cache import Kept, SessionCache
from .cache_buffers import CacheBuffers, LastBuffers
from .decoder import Decoder
from .inputs import Call

if TYPE_CHECKING:
    from ..runtimes.onnx_file import OnnxFile

# The axis of a cache that may be longer than the tokens in it.
ROOM = "cache_length"
_MASK = "attention_mask"
_FIRST_ROOM = 256  # tokens, where nobody says how many there will be


class InPlaceCache(SessionCache):
    """A row's tokens lie one after the other from the front: without the padding that the caller has between them, or
    with it, as the file has it. States beside keys and values are replaced by each call."""

    _buffers: CacheBuffers | None = None
    _is_seen = False  # by somebody who may keep a part of the buffers

    def __init__(self, kept: Sequence[Kept], memory: Memory, room: int = 0, last: LastBuffers | None = None):
        """`room` is how many tokens there will be, as far as that is known; `last` are buffers of texts before it."""
        super().__init__(kept, memory)
        self.room = room
        self._last = last or LastBuffers()
        self._growing = [row for row in kept if has_room(row)]
        self._others = [row for row in kept if not has_room(row)]
        self.states: list[torch.Tensor] = []
        self._lengths = torch.zeros(0, dtype=torch.int64)  # of rows, and how many tokens each has got since
        self._ahead = 0

    def __del__(self) -> None:
        if self._buffers is not None and not self._is_seen:
            self._last.keep(self._buffers)

    @property
    def lengths(self) -> torch.Tensor:
        return self._lengths + self._ahead if self._ahead else self._lengths

    @lengths.setter
    def lengths(self, lengths: torch.Tensor) -> None:
        self._lengths, self._ahead = lengths, 0

    def prepare(self, batch: int, tokens: int) -> None:
        """Room for so many tokens more in each row."""
        needed = self.seen + tokens
        if self._buffers is None or (not self.seen and self.batch_size != batch):
            self.lengths = torch.zeros(batch, dtype=torch.int64)
            room = self.room if self.room >= needed else needed + _FIRST_ROOM
            self._buffers = self._last.found(batch, room) or self._new(batch, room)
        elif needed > self._buffers.room:
            self._buffers = self._buffers.grown(max(needed, 2 * self._buffers.room), self.seen)
        if not self.seen:
            self.states = [row.empty(batch) for row in self._others]
        self._buffers.take_memory(needed)
        self.values = self._buffers.tensors

    def prepare_steps(self, batch: int, most: int) -> int:
        """Room for the next token in each row. For how many steps there is room now, at most so many."""
        self.prepare(batch, 1)
        return min(most, self._held.ready - self.seen)

    def stands(self, tokens: int, values: Sequence[Any]) -> bool:
        """Whether there are so many tokens, in buffers that the runtime sees as these."""
        return self.seen == tokens and self._buffers is not None and self._buffers.are(values)

    def _new(self, batch: int, room: int) -> CacheBuffers:
        shapes = [row.past.sized({ROOM: room}, batch) for row in self._growing]
        return CacheBuffers.zeros(shapes, [row.past.dtype for row in self._growing], self.memory)

    @property
    def buffers(self) -> list[torch.Tensor]:
        """Of full length. The next text may have them, once this cache is gone."""
        return [] if self._buffers is None else self._buffers.tensors

    def bound(self) -> list[Any]:
        """The buffers as the runtime sees them, the same list as long as they are the same."""
        return self._held.values()

    def row(self, row: int) -> list[Any]:
        return self._held.row(row)

    @property
    def _held(self) -> CacheBuffers:
        assert self._buffers is not None
        return self._buffers

    def add(self, counts: torch.Tensor, tokens: int) -> None:
        """After a call with so many columns, of which `counts` were tokens in each row."""
        self.lengths = self.lengths + counts
        self.seen += tokens

    def add_one(self) -> None:
        """After a call with one token in each row."""
        self._ahead += 1
        self.seen += 1

    def tensors(self) -> list[torch.Tensor]:
        self._is_seen = True
        longest = int(self.lengths.max()) if self.buffers else 0
        found, states = iter([buffer[:, :, :longest] for buffer in self.buffers]), iter(self.states)
        return [next(found if has_room(row) else states) for row in self.kept] if self.buffers else []

    def take(self, tensors: Sequence[torch.Tensor], tokens: int) -> None:
        self._buffers, self.values = None, None
        self.seen = 0
        growing = [tensor for tensor, row in zip(tensors, self.kept, strict=True) if has_room(row)]
        self.prepare(growing[0].shape[0], tokens)
        for buffer, tensor in zip(self.buffers, growing, strict=True):
            buffer[:, :, :tokens] = tensor
        self.states = [tensor for tensor, row in zip(tensors, self.kept, strict=True) if not has_room(row)]
        self.add(torch.full((growing[0].shape[0],), tokens), tokens)

    @property
    def batch_size(self) -> int:
        return -1 if self._buffers is None else self._buffers.rows

    @property
    def layers(self) -> list[Any]:
        return _layers(self.kept, self.tensors())

    @layers.setter
    def layers(self, layers: list[Any]) -> None:
        """The base class starts with an empty list; there is nothing to set."""

    def reset(self) -> None:
        """The buffers stay: they are written anew."""
        self.lengths = torch.zeros_like(self.lengths)
        self.values, self.seen = None, 0

    def crop(self, tokens_to_remove: int) -> None:
        """Nothing is moved: what lies behind a row's end is written over."""
        if self.states:
            super().crop(tokens_to_remove)  # says that it cannot be
        removed = min(abs(tokens_to_remove), self.seen)
        self.lengths = (self.lengths - removed).clamp(min=0)
        self.seen -= removed

    def reorder_cache(self, beam_idx: torch.LongTensor) -> None:
        if not self.buffers or torch.equal(beam_idx, torch.arange(self.batch_size)):
            return
        longest = int(self.lengths.max())
        for buffer in self.buffers:  # only tokens are moved, not the room behind them
            buffer[:, :, :longest] = buffer[:, :, :longest].index_select(0, beam_idx)
        self.lengths = self.lengths[beam_idx]
        self._change_states(lambda state, axis: state.index_select(axis, beam_idx))

    def _change_rows(self, change: Callable[[torch.Tensor, int], torch.Tensor]) -> None:
        if self._buffers is not None:
            self._buffers = self._buffers.with_rows(change)
            self.lengths = change(self.lengths, 0)
            self.values = self._buffers.tensors
            self._change_states(change)

    def _change_states(self, change: Callable[[torch.Tensor, int], torch.Tensor]) -> None:
        pairs = zip(self.states, self._others, strict=True)
        self.states = [s if row.batch_axis is None else change(s, row.batch_axis) for s, row in pairs]

    def __deepcopy__(self, _memo: Any) -> InPlaceCache:
        copied = InPlaceCache(self.kept, self.memory, self.room, self._last)
        if self._buffers is not None:
            copied._buffers = self._buffers.with_rows(lambda tensor, _axis: tensor.clone())
            copied.values = copied._buffers.tensors
        copied.lengths, copied.seen = self.lengths, self.seen
        copied.states = [state.clone() for state in self.states]
        return copied


def _layers(kept: Sequence[Kept], tensors: Sequence[torch.Tensor]) -> list[Any]:
    from .cache import Layer

    found: dict[int, Layer] = {}
    for i, row in enumerate(kept):
        index, part = row.place
        layer = found.setdefault(index, Layer())
        layer.parts[part] = tensors[i] if tensors else None
    return [found[index] for index in sorted(found)]


def has_room(row: Kept) -> bool:
    return ROOM in row.past.shape


def writes_in_place(step: Runner) -> bool:
    return any(ROOM in slot.shape for slot in step.inputs.values())


class InPlaceDecoder(Decoder):
    """Such a file counts the tokens of a row and takes padding behind them only: rows are packed before a call, and
    what comes out is put back where the caller has it. Unless its masks are the model's own: then padding is kept."""

    def __init__(self, step: Runner):
        super().__init__(step)
        self._file = cast("OnnxFile", step)  # other runtimes have no such files
        self._pairs = [(row.past.name, row.present) for row in self._own if has_room(row)]
        self._states = [row for row in self._own if not has_room(row)]
        fusions = Artifact(step.path).note("fusions") or ""
        self._window = "within a window" in fusions
        self._keeps_padding = "with the model's own mask" in fusions
        self._last = LastBuffers()

    def new_cache(self, room: int = 0) -> Cache:
        return InPlaceCache(self._own, self.memory, room, self._last)

    def run(self, inputs: Mapping[str, torch.Tensor], call: Call, cache: Cache | None) -> dict[str, torch.Tensor]:
        own = self.new_cache() if cache is None else cache
        if not isinstance(own, InPlaceCache):
            kind = type(own.self_attention_cache if isinstance(own, EncoderDecoderCache) else own).__name__
            raise problem(
                "E0314",
                f"this model cannot go on from a {kind}: its own cache is in buffers that the file writes into",
                "leave past_key_values out; generate(..., return_dict_in_generate=True) gives the cache to go on with",
            )
        if self._window and bool((inputs[_MASK].diff(dim=1) < 0).any()):
            raise problem(
                "E0301",
                "rows are padded behind their tokens: the model's window counts the padding, and this file's does not",
                "pad in front: tokenizer(..., padding_side='left')",
                "export it with --operators standard",
            )
        own.prepare(call.batch, call.tokens)
        if self._keeps_padding:
            return self._as_it_is(inputs, call, own)
        fresh = inputs[_MASK][:, -call.tokens :] != 0
        counts = fresh.sum(1)
        if bool(fresh.all()) and (call.tokens == 1 or call.batch == 1 or not call.past):
            results = self._called(inputs, own.bound())
        elif call.past:
            results = self._row_by_row(inputs, fresh, own)
        else:
            results = self._packed(inputs, fresh, own)
        own.add(counts, call.tokens)
        return results

    @property
    def keeps_state(self) -> bool:
        """Besides keys and values."""
        return self._file.keeps_state or bool(self._states)

    @functools.cached_property
    def free_inputs(self) -> set[str]:
        """What the file takes besides the cache and flags."""
        return {slot.name for slot in self._step.inputs} - {flag.name for flag in self._file.flags}

    def run_bound(
        self, inputs: Mapping[str, torch.Tensor], values: Sequence[Any]
    ) -> tuple[dict[str, torch.Tensor], Any]:
        """The outputs, and what is bound now, for `run_again`."""
        feeds = {name: self.memory.to_value(tensor) for name, tensor in inputs.items()}
        names = [*self._step.outputs, *(row.present for row in self._states)]
        bound = self._file.bound_to(values, self._pairs, names, feeds)
        results = self._file.run_bound(bound, feeds, len(names))
        return {name: self.memory.to_tensor(value) for name, value in zip(names, results, strict=True)}, bound

    def masks(self, bound: Any, arrays: Iterable[Any]) -> list[Any]:
        """For the next steps, as many of them as the file is for. One made after the other takes less time than each of
        them between two steps, when nothing that it needs is in the processor's cache."""
        return bound.integers(_MASK, arrays)

    def run_again(self, bound: Any, mask: Any) -> None:
        """With another of `masks`; all other inputs and the outputs lie where they lay."""
        self._file.run_bound_again(bound, _MASK, mask, len(self._step.outputs))

    def _called(self, inputs: Mapping[str, torch.Tensor], values: Sequence[Any]) -> dict[str, torch.Tensor]:
        return self.run_bound(inputs, values)[0]

    def _as_it_is(self, inputs: Mapping[str, torch.Tensor], call: Call, cache: InPlaceCache) -> dict[str, torch.Tensor]:
        """Every column as the caller has it. Of several tokens after others the kernel takes one row at a time."""
        given = dict(inputs) | dict(zip((row.past.name for row in self._states), cache.states, strict=True))
        if call.past and call.tokens > 1 and call.batch > 1:
            rows = [self._called(*self._row_of(i, given, call, cache)) for i in range(call.batch)]
            axes = {row.present: row.batch_axis or 0 for row in self._states}
            results = {name: torch.cat([row[name] for row in rows], axes.get(name, 0)) for name in rows[0]}
        else:
            results = self._called(given, cache.bound())
        # Of the runtime's memory a tensor keeps its own part alive; the next call gives others.
        cache.states = [results.pop(row.present) for row in self._states]
        cache.add(torch.full((call.batch,), call.tokens), call.tokens)
        return results

    def _row_of(
        self, i: int, given: Mapping[str, torch.Tensor], call: Call, cache: InPlaceCache
    ) -> tuple[dict[str, torch.Tensor], list[Any]]:
        axes = {row.past.name: row.batch_axis for row in self._states}
        axes |= {name: 1 for name, tensor in given.items() if _is_of_kinds(tensor, (call.batch, call.tokens))}
        there = {name: axes.get(name, 0) for name in given}
        row = {n: t if there[n] is None or not t.dim() else t.narrow(there[n], i, 1) for n, t in given.items()}
        return row, cache.row(i)

    def _packed(
        self, inputs: Mapping[str, torch.Tensor], fresh: torch.Tensor, cache: InPlaceCache
    ) -> dict[str, torch.Tensor]:
        """A prompt whose rows are padded: tokens first, each row in its own order."""
        order = fresh.int().argsort(dim=1, descending=True, stable=True)
        packed = {name: _in_order(tensor, order, fresh.shape) for name, tensor in inputs.items()}
        packed[_MASK] = fresh.gather(1, order).to(inputs[_MASK].dtype)
        back = order.argsort(dim=1)
        results = self._called(packed, cache.bound())
        if self._gives_last(inputs):
            return results
        if any(_tokens_first(value, fresh.shape) is None for value in results.values()):
            # The file gives the last columns only, which are padding here.
            return self._row_by_row(inputs, fresh, cache)
        return {name: _in_order(value, back, fresh.shape) for name, value in results.items()}

    def _row_by_row(
        self, inputs: Mapping[str, torch.Tensor], fresh: torch.Tensor, cache: InPlaceCache
    ) -> dict[str, torch.Tensor]:
        """More than one token after a past: the kernel takes one row at a time."""
        found: dict[str, list[torch.Tensor]] = {}
        for i, there in enumerate(fresh):
            row = {name: _row(tensor, i, there, fresh.shape) for name, tensor in inputs.items()}
            tokens = int(cache.lengths[i]) + int(there.sum())
            row[_MASK] = torch.ones(1, tokens, dtype=inputs[_MASK].dtype)
            rows = cache.row(i)
            for name, value in self._called(row, rows).items():
                whole = value if self._gives_last(inputs) else _spread(value, there)
                found.setdefault(name, []).append(whole)
        return {name: torch.cat(rows) for name, rows in found.items()}

    def _gives_last(self, inputs: Mapping[str, torch.Tensor]) -> bool:
        """Whether what comes out is of each row's last token, wherever that is."""
        return bool(self._file.flags) and ALL_LOGITS not in inputs


def _tokens_first(tensor: torch.Tensor, shape: Sequence[int]) -> torch.Tensor | None:
    """With rows and tokens as its first axes; nothing where it has none. Positions of several kinds have them last."""
    if tensor.dim() >= 2 and tensor.shape[:2] == tuple(shape):
        return tensor
    return tensor.permute(1, 2, 0) if _is_of_kinds(tensor, shape) else None


def _is_of_kinds(tensor: torch.Tensor, shape: Sequence[int]) -> bool:
    return tensor.dim() == 3 and not tensor.is_floating_point() and tensor.shape[1:] == tuple(shape)


def _as_before(changed: torch.Tensor, before: torch.Tensor, found: torch.Tensor) -> torch.Tensor:
    return changed if found is before else changed.permute(2, 0, 1)


def _in_order(tensor: torch.Tensor, order: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
    found = _tokens_first(tensor, shape)
    if found is None:
        return tensor
    index = order.reshape(*order.shape, *([1] * (found.dim() - 2))).expand(found.shape)
    return _as_before(found.gather(1, index), tensor, found)


def _row(tensor: torch.Tensor, row: int, there: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
    found = _tokens_first(tensor, shape)
    return tensor if found is None else _as_before(found[row : row + 1, there], tensor, found)


def _spread(tensor: torch.Tensor, there: torch.Tensor) -> torch.Tensor:
    """Back to where the caller has the tokens of a row; a file that gives the last ones only gives the last ones."""
    if tensor.dim() < 2 or tensor.shape[1] != int(there.sum()):
        return tensor
    spread = tensor.new_zeros(1, there.shape[0], *tensor.shape[2:])
    spread[:, there] = tensor
    return spread
