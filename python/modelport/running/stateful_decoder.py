"""A decoder whose cache is state of an OpenVINO model: each text has a request, in which its cache lies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from transformers.cache_utils import Cache, EncoderDecoderCache

from ..artifacts.ir import BEAMS
from ..base.errors import problem
from ..runtimes.openvino import IrSession
from ..runtimes.runner import Slot
from .cache import Layer, SessionCache
from .decoder import parts_of
from .inputs import Call

_ENCODER = ".encoder."


class StatefulCache(SessionCache):
    """A text as far as it was read. Rows change places at the next call, which is told from which row each goes on."""

    def __init__(self, session: IrSession, count: int = 0, beside: StatefulCache | None = None):
        """`beside` is the decoder's own, where this stands for what it has of the encoder."""
        super().__init__([], session.memory)
        self._session, self._count, self._beside = session, count, beside
        self.request: Any = None
        self.order = torch.zeros(0, dtype=torch.int64)  # of the rows of the last call

    @property
    def layers(self) -> list[Layer]:
        """Without contents: they lie in the runtime. Whisper hands them on all the same."""
        found = Layer()
        order = self.order if self._beside is None else self._beside.order
        rows = torch.zeros(max(len(order), 1), 0)
        found.parts = {"key": rows, "value": rows}
        return [found] * self._count

    @layers.setter
    def layers(self, layers: list[Any]) -> None:
        """The base class starts with an empty list; there is nothing to set."""

    def begin(self, batch: int) -> torch.Tensor:
        """Before a call: from which row each of its rows goes on."""
        if self.request is None:
            self.request = self._session.request()
        return self.order if self.seen else torch.arange(batch)

    def add(self, batch: int, tokens: int) -> None:
        self.order = torch.arange(batch)
        self.seen += tokens

    @property
    def is_initialized(self) -> bool:
        return self.seen > 0

    @property
    def batch_size(self) -> int:
        return len(self.order) if self.seen else -1

    @property
    def is_croppable(self) -> bool:
        return all(_length_axis(shape) is not None for shape in self._session.file.pasts.values())

    def crop(self, tokens_to_remove: int) -> None:
        self.seen = max(self.seen - abs(tokens_to_remove), 0)
        if self.seen == 0:
            self.reset()
            return
        axes = {name: _length_axis(shape) for name, shape in self._session.file.pasts.items() if _ENCODER not in name}
        self._session.shorten(self.request, axes, self.seen)

    def reset(self) -> None:
        self.seen = 0
        if self.request is not None:
            self.request.reset_state()

    def reorder_cache(self, beam_idx: torch.Tensor) -> None:
        self.order = self.order[beam_idx] if self.seen else self.order

    def batch_select_indices(self, indices: torch.Tensor) -> None:
        self._refuse_beside_encoder()
        self.order = self.order[indices] if self.seen else self.order

    def batch_repeat_interleave(self, repeats: int) -> None:
        self._refuse_beside_encoder()
        self.order = self.order.repeat_interleave(repeats) if self.seen else self.order

    def _refuse_beside_encoder(self) -> None:
        """What is kept of the encoder's output stays with its row."""
        if self.seen and any(_ENCODER in name for name in self._session.file.pasts):
            what = "the number of texts cannot change while this model generates"
            raise problem("E0314", what, "begin again with all of them")

    def __deepcopy__(self, _memo: Any) -> StatefulCache:
        copied = StatefulCache(self._session, self._count)
        copied.order, copied.seen = self.order, self.seen
        if self.request is not None:
            copied.request = self._session.copy_of(self.request)
        return copied


class StatefulDecoder:
    """Calls the model that gives the next token."""

    plain_name: str | None = None
    room: int | None = None  # the cache grows
    has_cache = True

    def __init__(self, session: IrSession, config: Any):
        text = config.get_text_config(decoder=True)
        self._layers: int = getattr(text, "decoder_layers", 0) or getattr(text, "num_hidden_layers", 0)
        self.session, self.memory = session, session.memory
        self._slots = [slot for name, slot in session.inputs.items() if name != BEAMS]
        self._pasts = session.file.pasts

    def new_cache(self) -> Cache:
        own = StatefulCache(self.session, self._layers)
        crosses = any(slot.name == "encoder_hidden_states" for slot in self._slots)
        return EncoderDecoderCache(own, StatefulCache(self.session, self._layers, own)) if crosses else own

    def inputs(self, _past: int) -> list[Slot]:
        return self._slots

    def run(self, inputs: Mapping[str, torch.Tensor], call: Call, cache: Cache | None) -> dict[str, torch.Tensor]:
        own = parts_of(self.new_cache() if cache is None else cache)[0]
        if not isinstance(own, StatefulCache):
            raise problem("E0314", "this cache is of another model", "leave past_key_values out")
        order = own.begin(call.batch)
        if len(order) != call.batch:
            what = f"the cache has {len(order)} rows, and there are tokens for {call.batch}"
            raise problem("E0301", what, "pass as many rows of tokens")
        shapes = {name: list(tensor.shape) for name, tensor in inputs.items()}
        self.session.check_sizes(shapes | {name: self._size(name, call) for name in self._pasts})
        given = {**inputs, BEAMS: order.to(torch.int32)}
        self.session.call(own.request, {name: self.memory.to_value(tensor) for name, tensor in given.items()})
        own.add(call.batch, call.tokens)
        results = self.session.results(own.request, self.session.outputs)
        return {n: self.memory.to_tensor(value) for n, value in zip(self.session.outputs, results, strict=True)}

    def _size(self, name: str, call: Call) -> list[int]:
        """Of a cache as it is now. What is kept of the encoder's output is no input any more: nothing comes in."""
        seen = 0 if _ENCODER in name else call.past
        shape = self._pasts[name]
        return [int(size) if size.isdecimal() else call.batch if "batch" in size else seen for size in shape]


def _length_axis(shape: list[str]) -> int | None:
    return next((axis for axis, size in enumerate(shape) if not size.isdecimal() and "batch" not in size), None)
