"""How programs are run, whatever runtime does it: what `modelport.load` and generation need of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import torch

from ..artifacts.limits import Limits


class Slot(NamedTuple):
    """One input: a size is a number, or the name of an axis that may have any."""

    name: str
    dtype: torch.dtype
    shape: list[int | str]

    def sized(self, axes: Mapping[str, int], otherwise: int) -> list[int]:
        """The shape with these sizes for named axes, and one for all others."""
        return [size if isinstance(size, int) else axes.get(size, otherwise) for size in self.shape]

    def __str__(self) -> str:
        return f"{self.name}: {str(self.dtype).removeprefix('torch.')}[{', '.join(map(str, self.shape))}]"


def misfit(slot: Slot, shape: Sequence[int]) -> str | None:
    """Why an input does not take a tensor of this shape."""
    if len(shape) != len(slot.shape):
        return f"{slot.name} has {len(shape)} axes, and the file takes {len(slot.shape)}"
    for axis, (size, wanted) in enumerate(zip(shape, slot.shape, strict=True)):
        if isinstance(wanted, int) and wanted != size:
            return f"{slot.name} has size {size} on axis {axis}, and the file takes {wanted}"
    return None


class Runner(Protocol):
    """A program that a runtime has loaded. Its values stay in the runtime's memory between calls; what the artifact is
    not valid for is refused before anything runs."""

    path: Path
    memory: Memory
    limits: Limits | None
    inputs: dict[str, Slot]
    outputs: list[str]
    flags: list[Slot]  # further inputs, which have a value where nobody gives one

    def run(self, feeds: Mapping[str, Any], outputs: Sequence[str]) -> Sequence[Any]:
        """The outputs by these names, as values of the runtime."""

    def tensors(self, given: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Every output, from tensors and as tensors."""

    def reset(self) -> None:
        """Buffers as they were at the export."""

    def takes(self) -> str:
        """The inputs, for an error."""


class Memory(Protocol):
    """Tensors as a runtime sees them: the same memory where that can be."""

    def to_value(self, tensor: torch.Tensor) -> Any:
        """A value with a method `shape`, as `Runner.run` takes it."""

    def to_tensor(self, value: Any) -> torch.Tensor: ...
