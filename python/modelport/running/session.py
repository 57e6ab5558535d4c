"""One file in onnxruntime: what it takes and gives, and tensors that go in and come out without being copied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from ..artifacts.artifact import Artifact
from ..artifacts.limits import CallLimits
from ..base.errors import ExportError, problem
from ..runtimes.onnxruntime import session_with_outputs, shape_of

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


class Session:
    """A file that is loaded. `run` takes and gives OrtValues."""

    def __init__(self, path: Path, options: Mapping[str, Any]):
        self.path = path
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

    def reset(self) -> None:
        """Buffers that the model writes to, as they were when it was exported."""
        self._call.reset()

    def tensors(self, given: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """The same for tensors, with every output."""
        feeds = {name: to_value(tensor) for name, tensor in given.items()}
        return {n: to_tensor(value) for n, value in zip(self.outputs, self.run(feeds, self.outputs), strict=True)}

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


def misfit(slot: Slot, shape: Sequence[int]) -> str | None:
    """Why an input does not take a tensor of this shape."""
    if len(shape) != len(slot.shape):
        return f"{slot.name} has {len(shape)} axes, and the file takes {len(slot.shape)}"
    for axis, (size, wanted) in enumerate(zip(shape, slot.shape, strict=True)):
        if isinstance(wanted, int) and wanted != size:
            return f"{slot.name} has size {size} on axis {axis}, and the file takes {wanted}"
    return None


def to_value(tensor: torch.Tensor) -> Any:
    """The tensor as onnxruntime sees it: the same memory."""
    from onnxruntime import OrtValue

    tensor = tensor.detach().contiguous()
    if tensor.dtype == torch.bool:  # onnxruntime does not know DLPack's code for it
        return OrtValue.ortvalue_from_numpy(tensor.numpy())
    return OrtValue.from_dlpack(tensor)


def to_tensor(value: Any) -> torch.Tensor:
    """The same memory as a tensor."""
    if value.data_type() == "tensor(bool)":
        return torch.from_numpy(value.numpy())
    return torch.from_dlpack(value)


def _dtype(path: Path, argument: Any) -> torch.dtype:
    if argument.type not in DTYPES:
        raise problem("E0103", f"{path}: the input {argument.name} is a {argument.type}", "export it in another type")
    return DTYPES[argument.type]


def _shape(argument: Any) -> list[int | str]:
    """An axis without a name is one of its own."""
    return [
        size if isinstance(size, int) else size or f"{argument.name}_{axis}" for axis, size in enumerate(argument.shape)
    ]
