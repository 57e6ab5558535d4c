"""Keys and values of all layers in buffers with room for more tokens than there are, and those of the last text, which
the next one may have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from ..runtimes.runner import Memory
from .untouched import untouched_zeros

_AHEAD = 128  # tokens whose memory is taken at once
_ROWS, _TOKENS = 0, 2  # axes of a buffer


class CacheBuffers:
    """The tensors, and how the runtime sees them."""

    def __init__(self, tensors: list[torch.Tensor], memory: Memory, taken: int = 0):
        """`taken` is of how many tokens the memory has been written to."""
        self.tensors = tensors
        self._memory, self._taken = memory, taken
        self._values: list[Any] = []

    @classmethod
    def zeros(cls, shapes: Sequence[Sequence[int]], dtypes: Sequence[torch.dtype], memory: Memory) -> CacheBuffers:
        return cls(untouched_zeros(shapes, dtypes), memory)

    @property
    def rows(self) -> int:
        return self.tensors[0].shape[_ROWS]

    @property
    def room(self) -> int:
        return self.tensors[0].shape[_TOKENS]

    def values(self) -> list[Any]:
        """Made once, and always the same list: a step has dozens, and nothing else takes so long in it."""
        if not self._values:
            self._values = [self._memory.to_value(tensor) for tensor in self.tensors]
        return self._values

    def are(self, values: Sequence[Any]) -> bool:
        return self._values is values

    @property
    def ready(self) -> int:
        """Tokens that there is room for, in memory that was taken."""
        return min(self._taken, self.room)

    def row(self, row: int) -> list[Any]:
        """How the runtime sees one of the rows."""
        return [self._memory.to_value(tensor[row : row + 1]) for tensor in self.tensors]

    def take_memory(self, needed: int) -> None:
        """For some tokens after those that are needed, head by head. Memory is given page by page when it is written
        to; if pages came with every few tokens, a head's next one would lie anywhere, and take longer to read."""
        wanted = -(-needed // _AHEAD) * _AHEAD
        if needed > self._taken:
            for tensor in self.tensors:
                tensor[:, :, needed:wanted] = 0
            self._taken = wanted

    def forget(self) -> None:
        """Ready for another text. The only row of one is written from the front on, without a gap; where there are
        several, what lies behind the shorter ones is zero."""
        if self.rows > 1:
            for tensor in self.tensors:
                tensor[:, :, : self._taken] = 0

    def grown(self, room: int, seen: int) -> CacheBuffers:
        """With room for more, after so many tokens."""
        shapes = [[*tensor.shape[:_TOKENS], room, *tensor.shape[_TOKENS + 1 :]] for tensor in self.tensors]
        made = CacheBuffers.zeros(shapes, [tensor.dtype for tensor in self.tensors], self._memory)
        for new, old in zip(made.tensors, self.tensors, strict=True):
            new[:, :, :seen] = old[:, :, :seen]
        return made

    def with_rows(self, change: Callable[[torch.Tensor, int], torch.Tensor]) -> CacheBuffers:
        return CacheBuffers([change(tensor, _ROWS) for tensor in self.tensors], self._memory, self._taken)


class LastBuffers:
    """What a text leaves behind: the next one need not ask the system for memory, and nothing has to be
    bound anew. At most those of one text are kept."""

    def __init__(self) -> None:
        self._kept: list[CacheBuffers] = []  # one at most; lists may be changed by several threads

    def keep(self, buffers: CacheBuffers) -> None:
        self._kept[:] = [buffers]

    def found(self, rows: int, room: int) -> CacheBuffers | None:
        """Nobody else has them. Those that do not fit go, so that there is memory for those that do."""
        try:
            buffers = self._kept.pop()
        except IndexError:
            return None
        if buffers.rows != rows or buffers.room < room:
            return None
        buffers.forget()
        return buffers
