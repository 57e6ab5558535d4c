"""One file in onnxruntime: what it takes and gives, and tensors that go in and come out without being copied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from ..artifacts.artifact import ALL_LOGITS
from ..base.errors import ExportError, problem
from ..base.printable import listed
from .bound_values import BoundValues
from .huge_pages import HugePages
from .onnxruntime import OrtMemory, shape_of
from .runner import Memory, Slot, misfit
from .sessions import LoadedFile

DTYPES = {
    "tensor(float)": torch.float32,
    "tensor(double)": torch.float64,
    "tensor(float16)": torch.float16,
    "tensor(bfloat16)": torch.bfloat16,
    "tensor(int64)": torch.int64,
    "tensor(int32)": torch.int32,
    "tensor(int16)": torch.int16,
    "tensor(int8)": torch.int8,
    "tensor(uint8)": torch.uint8,
    "tensor(bool)": torch.bool,
}


class OnnxFile:
    """A file that is loaded. `run` takes and gives OrtValues."""

    def __init__(self, path: Path, loaded: LoadedFile):
        self.path = path
        self.memory: Memory = OrtMemory()
        artifact, self._call, self._session, memory = loaded
        self.limits = artifact.limits
        self.flags = [Slot(ALL_LOGITS, torch.bool, [])] if artifact.gives_last_logits else []
        self._bound: BoundValues | None = None
        self._huge_pages = HugePages(memory)
        self.inputs = {x.name: Slot(x.name, _dtype(path, x), _shape(x)) for x in self._session.get_inputs()}
        further = set(self._call.further_outputs)
        self.outputs = [x.name for x in self._session.get_outputs() if x.name not in further]

    def run(self, feeds: Mapping[str, Any], outputs: Sequence[str]) -> Sequence[Any]:
        """The outputs by these names, in onnxruntime's own memory. What the file is not for is refused."""
        call = self._call
        call.check_shapes(feeds, shape_of)
        further = call.further_outputs
        try:
            results = self._session.run_with_ort_values([*outputs, *further], {**feeds, **call.state})
        except Exception as error:
            raise self._refused(feeds, error) from error
        self._huge_pages.called()
        call.take(results[len(outputs) :], lambda value: bool(value.numpy().all()))
        return results[: len(outputs)]

    @property
    def keeps_state(self) -> bool:
        return bool(self._call.state_outputs)

    def bound_to(
        self, kept: Sequence[Any], names: Sequence[tuple[str, str]], outputs: Sequence[str], feeds: Mapping[str, Any]
    ) -> BoundValues:
        """For `run_bound`: the values of `kept` are read and written where they are, under pairs of names of an input
        and an output. They are bound once for as long as the list is the same: a step has dozens."""
        wanted = [*outputs, *self._call.further_outputs]
        # State outlives the next run, and what is bound does not.
        if self._bound is None or self.keeps_state or not self._bound.fits(kept, wanted, {**feeds, **self._call.state}):
            self._bound = BoundValues(self._session, self.limits, kept, names, wanted)
        return self._bound

    def run_bound(self, bound: BoundValues, feeds: Mapping[str, Any], outputs: int) -> Sequence[Any]:
        """As `run`, with so many outputs."""
        bound.take({**feeds, **self._call.state})
        try:
            results = bound.run()
        except Exception as error:
            raise self._refused(feeds, error) from error
        self._huge_pages.called()
        self._call.take(results[outputs:], lambda value: bool(value.numpy().all()))
        return results[:outputs]

    def run_bound_again(self, bound: BoundValues, name: str, value: Any, outputs: int) -> None:
        """As the last call, with another of `bound.integers` for one input; outputs lie where they lay, in the sizes
        that they had. For a file without state of its own: what it gives further are conditions."""
        try:
            bound.run_again(name, value)
        except Exception as error:
            raise self._refused({}, error) from error
        self._huge_pages.called()
        if self.limits is not None and not all(truths := bound.truths(outputs)):
            self.limits.check_data(truths)

    def reset(self) -> None:
        """Buffers that the model writes to, as they were when it was exported."""
        self._call.reset()

    def tensors(self, given: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """The same for tensors, with every output."""
        feeds = {name: self.memory.to_value(tensor) for name, tensor in given.items()}
        return {
            n: self.memory.to_tensor(value)
            for n, value in zip(self.outputs, self.run(feeds, self.outputs), strict=True)
        }

    def takes(self) -> str:
        return f"it takes: {listed(self.inputs.values())}"

    def _refused(self, feeds: Mapping[str, Any], error: Exception) -> ExportError:
        """onnxruntime names the node where it failed; more often than not a size is the cause."""
        for name, slot in self.inputs.items():
            what = misfit(slot, feeds[name].shape()) if name in feeds else None
            if what:
                return problem("E0301", f"{self.path.name}: {what}", self.takes())
        text = " ".join(str(error).split())
        return problem("E0301", f"{self.path} does not run on these inputs: {text}", self.takes())


def _dtype(path: Path, argument: Any) -> torch.dtype:
    if argument.type not in DTYPES:
        raise problem("E0106", f"{path}: the input {argument.name} is a {argument.type}", "export it in another type")
    return DTYPES[argument.type]


def _shape(argument: Any) -> list[int | str]:
    """An axis without a name is one of its own."""
    return [
        size if isinstance(size, int) else size or f"{argument.name}_{axis}" for axis, size in enumerate(argument.shape)
    ]
