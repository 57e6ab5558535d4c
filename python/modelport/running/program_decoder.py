"""A decoder whose cache is in the memory of an ExecuTorch program: one text at a time, each token at its position."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from transformers.cache_utils import Cache, EncoderDecoderCache

from ..base.errors import problem
from ..runtimes.executorch import ProgramSession
from ..runtimes.runner import Slot
from .cache import Layer, SessionCache
from .decoder import parts_of
from .inputs import Call

POSITIONS = "cache_position"
_NO_TOKENS = (POSITIONS, "encoder_hidden_states")


class ProgramCache(SessionCache):
    """Which tokens were read; what the model made of them is in the program, as long as it reads no other text."""

    def __init__(self, memory: Any, count: int = 0):
        super().__init__([], memory)
        self.read: dict[str, torch.Tensor] = {}  # tokens, and what else there is a value a token of
        self._count = count

    @property
    def layers(self) -> list[Layer]:
        """Without contents: nobody sees those. Whisper hands them on all the same."""
        found = Layer()
        found.parts = {"key": torch.zeros(1, 0), "value": torch.zeros(1, 0)}
        return [found] * self._count

    @layers.setter
    def layers(self, layers: list[Any]) -> None:
        """The base class starts with an empty list; there is nothing to set."""

    def add(self, read: Mapping[str, torch.Tensor], tokens: int) -> None:
        before = {name: _tokens_of(value, 0, self.seen) for name, value in self.read.items()}
        self.read = {n: torch.cat([before[n], v], dim=_axis(v)) if n in before else v for n, v in read.items()}
        self.seen += tokens

    @property
    def is_initialized(self) -> bool:
        return self.seen > 0

    @property
    def is_croppable(self) -> bool:
        return True

    def crop(self, tokens_to_remove: int) -> None:
        self.seen = max(self.seen - abs(tokens_to_remove), 0)

    def reset(self) -> None:
        self.read, self.seen = {}, 0

    def __deepcopy__(self, _memo: Any) -> ProgramCache:
        copied = ProgramCache(self.memory, self._count)
        copied.read, copied.seen = self.read, self.seen
        return copied


class ProgramDecoder:
    """Calls the method that gives the next token."""

    plain_name: str | None = None

    def __init__(self, session: ProgramSession, room: int | None, config: Any):
        """`room` is how many tokens the cache holds."""
        text = config.get_text_config(decoder=True)
        self._layers: int = getattr(text, "decoder_layers", 0) or getattr(text, "num_hidden_layers", 0)
        self.session, self.memory = session, session.memory
        slots = list(session.inputs.values())
        # In files of others inputs have no names; their order is known.
        self._theirs = dict(zip(_names(slots), session.inputs, strict=True))
        self._slots = [slot._replace(name=name) for name, slot in zip(self._theirs, slots, strict=True)]
        self._tokens = self._slots[0].name
        largest = session.file.largest[0][1]
        self._at_once = largest
        self.room = room if self.has_cache and room is not None else largest
        self._owner: weakref.ref[ProgramCache] | None = None

    @property
    def has_cache(self) -> bool:
        return POSITIONS in self._theirs

    @property
    def reads_plain_text(self) -> bool:
        """Whether it takes the tokens of the whole text and nothing else."""
        return list(self._theirs) == ["input_ids"]

    def new_cache(self) -> Cache:
        own = ProgramCache(self.memory, self._layers)
        crosses = "encoder_hidden_states" in self._theirs
        return EncoderDecoderCache(own, ProgramCache(self.memory, self._layers)) if crosses else own

    def inputs(self, _past: int) -> list[Slot]:
        return self._slots

    def run(self, inputs: Mapping[str, torch.Tensor], call: Call, cache: Cache | None) -> dict[str, torch.Tensor]:
        self._refuse(call)
        if not self.has_cache:
            return self._called(inputs)
        own = parts_of(self.new_cache() if cache is None else cache)[0]
        if not isinstance(own, ProgramCache):
            raise problem("E0314", "this cache is of another model", "leave past_key_values out")
        past = own.seen
        read = {name: inputs[name] for name in self._theirs if name not in _NO_TOKENS}
        if own.read and past and (self._owner is None or self._owner() is not own):
            self._read(inputs, own.read, range(past))  # another text was read meanwhile
        self._owner = weakref.ref(own)
        results = self._read(inputs, read, range(past, past + call.tokens))
        own.add(read, call.tokens)
        return results

    def _read(
        self, inputs: Mapping[str, torch.Tensor], read: Mapping[str, torch.Tensor], places: range
    ) -> dict[str, torch.Tensor]:
        """`read` has what there is a value a token of, for these places."""
        results: dict[str, torch.Tensor] = {}
        for start in range(0, len(places), self._at_once):
            piece = places[start : start + self._at_once]
            given = {name: _tokens_of(value, start, len(piece)) for name, value in read.items()}
            results = self._called({**inputs, **given, POSITIONS: torch.tensor(piece)})
        return results

    def _called(self, inputs: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        results = self.session.tensors({theirs: inputs[name] for name, theirs in self._theirs.items()})
        return results if "logits" in results else {"logits": next(iter(results.values()))}

    def _refuse(self, call: Call) -> None:
        if call.batch > 1:
            what = f"the program reads one text at a time, and there are {call.batch} (or so many beams)"
            raise problem("E0301", what, "call generate for each, with num_beams=1 and num_return_sequences=1")
        if "encoder_hidden_states" not in self._theirs:
            refuse_padding(self._theirs, call.given)
        refuse_no_room(self.room, call.past + call.tokens)


def _axis(value: torch.Tensor) -> int:
    """That of the tokens: embeddings have a width behind it."""
    return 1 if value.is_floating_point() else value.dim() - 1


def _tokens_of(value: torch.Tensor, start: int, count: int) -> torch.Tensor:
    return value.narrow(_axis(value), start, count)


def refuse_padding(taken: Iterable[str], given: Mapping[str, Any]) -> None:
    """Raises where a mask hides something from a method that takes none."""
    mask = given.get("attention_mask")
    if "attention_mask" not in taken and isinstance(mask, torch.Tensor) and mask.dim() == 2 and not bool(mask.all()):
        what = "the program reads one text without padding, and attention_mask hides some of it"
        raise problem("E0301", what, "leave the padding out: one text has none")


def refuse_no_room(room: int | None, tokens: int, new: int = 0) -> None:
    """Raises where a text, or what is to be generated after it, does not fit into the cache of a program."""
    if room is None or tokens + new <= room:
        return
    again = "export it again with a larger --max_seq_len"
    if tokens > room or not new:
        what = f"the prompt has {tokens} tokens, and the cache of the program holds {room}"
        raise problem("E0312", what, f"shorten it: tokenizer(..., truncation=True, max_length={room})", again)
    what = f"the prompt has {tokens} tokens, and with {new} new ones there are more than the {room} of the cache"
    raise problem("E0312", what, f"max_new_tokens={max(room - tokens, 1)}", again)


def _names(slots: Sequence[Slot]) -> list[str]:
    if not slots[0].name.startswith("input_") or slots[0].name == "input_ids":
        return [slot.name for slot in slots]
    first = "inputs_embeds" if slots[0].dtype.is_floating_point else "input_ids"
    between = ["encoder_hidden_states"] if len(slots) == 3 else [slot.name for slot in slots[1:-1]]
    return [first, *between, *([POSITIONS] if len(slots) > 1 else [])]
