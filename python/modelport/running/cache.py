"""The cache of an exported model: what one call leaves behind for the next, in the runtime's own memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from transformers.cache_utils import Cache, DynamicCache

from ..base.errors import problem
from ..runtimes.runner import Memory, Slot

_NAME = re.compile(
    r"past(?:_key_values)?(?:_(?P<state>\w+))?\.(?P<layer>\d+)(?:\.(?:decoder|encoder))?(?:\.(?P<part>\w+))?"
)


class Kept(NamedTuple):
    """One tensor of a cache: it comes in as `past` and goes out as `present`."""

    past: Slot
    present: str
    batch_axis: int | None  # None: a number that all rows have in common
    length_axis: int | None  # None: a state of one size

    @property
    def crosses(self) -> bool:
        """Made of the encoder's output in the first call, and the same ever after."""
        return ".encoder." in self.past.name

    @property
    def place(self) -> tuple[int, str]:
        """Layer, and what it is of it: key, value, conv, ..."""
        found = _NAME.fullmatch(self.past.name)
        if found is None:
            return 0, self.past.name
        return int(found["layer"]), "_".join(filter(None, (found["state"], found["part"])))

    def empty(self, batch: int) -> torch.Tensor:
        """Before the first token: nothing along an axis that grows, zeros in a state of one size."""
        shape = [size if isinstance(size, int) else 0 for size in self.past.shape]
        if self.batch_axis is not None and not isinstance(self.past.shape[self.batch_axis], int):
            shape[self.batch_axis] = batch
        return torch.zeros(shape, dtype=self.past.dtype)


class SessionCache(DynamicCache):
    """Values by the inputs that take them. They are never written to: a call gives new ones."""

    def __init__(self, kept: Sequence[Kept], memory: Memory):
        Cache.__init__(self, layers=[])
        self.kept, self.memory = kept, memory
        self.names, self.presents = [row.past.name for row in kept], [row.present for row in kept]
        self.values: Sequence[Any] | None = None  # before the first call
        self.seen = 0  # tokens

    def start(self, batch: int) -> Sequence[Any]:
        """What goes into the next call."""
        if self.values is None:
            return [self.memory.to_value(kept.empty(batch)) for kept in self.kept]
        return self.values

    def fill(self, values: Sequence[Any], tokens: int) -> None:
        """What came out of it, after so many new tokens."""
        self.values = values
        first = self.kept[0]
        self.seen = values[0].shape()[first.length_axis or 0] if first.crosses else self.seen + tokens

    def take(self, tensors: Sequence[torch.Tensor], tokens: int) -> None:
        """What somebody else kept of an earlier call, after so many tokens."""
        self.values, self.seen = [self.memory.to_value(tensor) for tensor in tensors], tokens

    def tensors(self) -> list[torch.Tensor]:
        return [self.memory.to_tensor(value) for value in self.values or ()]

    def get_seq_length(self, layer_idx: int = 0) -> int:
        return self.seen

    def get_max_length(self, layer_idx: int | None = None) -> int:
        return -1

    def get_mask_sizes(self, query_length: int, layer_idx: int = 0) -> tuple[int, int]:
        return self.seen + query_length, 0

    def has_previous_state(self, layer_idx: int | None = None, state_idx: int | None = None) -> bool:
        return self.seen > 0

    @property
    def layers(self) -> list[Layer]:
        """The tensors by layer, for who wants to look at them."""
        found: dict[int, Layer] = {}
        for i, kept in enumerate(self.kept):
            index, part = kept.place
            layer = found.setdefault(index, Layer())
            layer.parts[part] = None if self.values is None else self.memory.to_tensor(self.values[i])
        return [found[index] for index in sorted(found)]

    @layers.setter
    def layers(self, layers: list[Any]) -> None:
        """The base class starts with an empty list; there is nothing to set."""

    def __len__(self) -> int:
        return len({kept.place[0] for kept in self.kept})

    @property
    def batch_size(self) -> int:
        pairs = zip(self.values or (), self.kept, strict=False)
        return next((value.shape()[kept.batch_axis] for value, kept in pairs if kept.batch_axis is not None), -1)

    is_compileable = False
    is_sliding: Sequence[bool] = ()

    @property
    def is_initialized(self) -> bool:
        return self.values is not None

    @property
    def is_croppable(self) -> bool:
        return all(kept.length_axis is not None for kept in self.kept)

    def activate_past_recording(self) -> None:
        """Nothing is thrown away, so that there is nothing to record."""

    def reset(self) -> None:
        self.values, self.seen = None, 0

    def reorder_cache(self, beam_idx: torch.LongTensor) -> None:
        if not torch.equal(beam_idx, torch.arange(self.batch_size)):
            self._change_rows(lambda tensor, axis: tensor.index_select(axis, beam_idx))

    def batch_select_indices(self, indices: torch.Tensor) -> None:
        chosen = indices.nonzero().flatten() if indices.dtype == torch.bool else indices
        self._change_rows(lambda tensor, axis: tensor.index_select(axis, chosen))

    def batch_repeat_interleave(self, repeats: int) -> None:
        self._change_rows(lambda tensor, axis: tensor.repeat_interleave(repeats, dim=axis))

    def crop(self, tokens_to_remove: int) -> None:
        """Takes the last tokens away; the number is negative, as in transformers."""
        removed = abs(tokens_to_remove)
        if not removed or self.values is None:
            return
        if not self.is_croppable:
            raise problem(
                "E0314",
                "this model keeps states that cannot go back by some tokens",
                "generate without what needs that, such as assisted decoding",
            )
        self._change(lambda tensor, kept: tensor.narrow(kept.length_axis, 0, tensor.shape[kept.length_axis] - removed))
        self.seen -= removed

    def update(self, *_args: Any, **_kwargs: Any) -> Any:
        raise problem(
            "E0314",
            "this cache belongs to an exported model, which fills it itself",
            "pass it to the model that it came from: model.generate(..., past_key_values=cache)",
        )

    def __deepcopy__(self, _memo: Any) -> SessionCache:
        copied = SessionCache(self.kept, self.memory)
        copied.values, copied.seen = None if self.values is None else list(self.values), self.seen
        return copied

    def _change_rows(self, change: Callable[[torch.Tensor, int], torch.Tensor]) -> None:
        self._change(lambda tensor, kept: tensor if kept.batch_axis is None else change(tensor, kept.batch_axis))

    def _change(self, change: Callable[[torch.Tensor, Kept], torch.Tensor]) -> None:
        if self.values is not None:
            pairs = zip(self.values, self.kept, strict=True)
            self.values = [self.memory.to_value(change(self.memory.to_tensor(value), kept)) for value, kept in pairs]


class Layer:
    """One layer's tensors."""

    is_sliding = False

    def __init__(self) -> None:
        self.parts: dict[str, torch.Tensor | None] = {}

    @property
    def keys(self) -> torch.Tensor | None:
        return self.parts.get("key")

    @property
    def values(self) -> torch.Tensor | None:
        return self.parts.get("value")
