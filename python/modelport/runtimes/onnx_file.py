"""One file in onnxruntime: what it takes and gives, and tensors that go in and come out without being copied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from ..artifacts.artifact import Artifact
from ..artifacts.limits import CallLimits
from ..base.errors import ExportError, problem
from .onnxruntime import OrtMemory, session_with_outputs, shape_of
from .runner import Memory, Slot, misfit

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

    def __init__(self, path: Path, options: Mapping[str, Any]):
        self.path = path
        self.memory: Memory = OrtMemory()
        self.limits = Artifact(path).limits
        self._call = CallLimits(self.limits)
        try:
            self._session = session_with_outputs(path, self._call.check_outputs, **options)
        except ExportError:
            raise
        except Exception as error:  # onnxruntime's exceptions have no common class
            text = " ".join(str(error).split())
            raise problem("E0103", f"onnxruntime does not load {path}: {text}", "export it again") from error
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
        call.take(results[len(outputs) :], lambda value: bool(value.numpy().all()))
        return results[: len(outputs)]

    def run_into(self, feeds: Mapping[str, Any], outputs: Sequence[str], into: Mapping[str, Any]) -> Sequence[Any]:
        """As `run`; further outputs are written into values that there are already, which may be inputs as well."""
        call = self._call
        call.check_shapes(feeds, shape_of)
        binding = self._session.io_binding()
        for name, value in {**feeds, **call.state}.items():
            binding.bind_ortvalue_input(name, value)
        names = [*outputs, *call.further_outputs]
        for name in names:
            binding.bind_output(name, "cpu")
        for name, value in into.items():
            binding.bind_ortvalue_output(name, value)
        try:
            self._session.run_with_iobinding(binding)
        except Exception as error:
            raise self._refused(feeds, error) from error
        results = binding.get_outputs()[: len(names)]
        call.take(results[len(outputs) :], lambda value: bool(value.numpy().all()))
        return results[: len(outputs)]

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
        return f"it takes: {', '.join(map(str, self.inputs.values()))}"

    def _refused(self, feeds: Mapping[str, Any], error: Exception) -> ExportError:
        """onnxruntime names the node where it failed; more often than not a size is the cause."""
        for name, value in feeds.items():
            what = misfit(self.inputs[name], value.shape())
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
