"""OpenVINO's runtime: one model, called with tensors; a request of its own for each text where it has state."""

from __future__ import annotations

import functools
import importlib.util
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..artifacts.ir import BEAMS, REQUIREMENT, IrFile
from ..artifacts.limits import Limits
from ..base.errors import ExportError, problem
from ..base.printable import listed
from .executorch import DTYPES
from .runner import Memory, Slot, misfit

# As exact as the model is written: on some processors OpenVINO would else compute in fewer bits, and keep a cache in 8.
_EXACT = {"EXECUTION_MODE_HINT": "ACCURACY"}


def needs_openvino() -> None:
    if importlib.util.find_spec("openvino") is None:
        raise problem(
            "E0307",
            "OpenVINO is not installed, which makes its models and runs them",
            f"pip install '{REQUIREMENT}'",
            "pip install 'modelport[openvino]'",
        )


@functools.cache
def core() -> Any:
    needs_openvino()
    import openvino

    return openvino.Core()


def check_options(options: Mapping[str, Any]) -> None:
    """Options are properties of OpenVINO's CPU device: INFERENCE_NUM_THREADS=4."""
    known = core().get_property("CPU", "SUPPORTED_PROPERTIES")
    unknown = [name for name in options if name not in known]
    if unknown:
        what = f"OpenVINO's CPU device has no property {', '.join(unknown)}"
        raise problem("E0306", what, f"it has: {', '.join(sorted(known))}")


class Held:
    """A value that goes in or came out, as an array; numpy has no bf16, of which it is the bits."""

    def __init__(self, array: Any, *, is_bf16: bool = False):
        self.array, self._is_bf16 = array, is_bf16

    def shape(self) -> list[int]:
        return list(self.array.shape)

    def tensor(self) -> Any:
        """As OpenVINO takes it: the same memory."""
        import openvino

        if self._is_bf16:
            return openvino.Tensor(self.array, openvino.Shape(self.shape()), openvino.Type.bf16)
        return openvino.Tensor(self.array, shared_memory=bool(self.array.size and self.array.ndim))

    def to_torch(self) -> torch.Tensor:
        tensor = torch.from_numpy(self.array)
        return tensor.view(torch.bfloat16) if self._is_bf16 else tensor


class OpenvinoMemory:
    """Tensors and values over the same memory."""

    def to_value(self, tensor: torch.Tensor) -> Held:
        tensor = tensor.detach().cpu().contiguous()
        is_bf16 = tensor.dtype == torch.bfloat16
        return Held((tensor.view(torch.int16) if is_bf16 else tensor).numpy(), is_bf16=is_bf16)

    def to_tensor(self, value: Held) -> torch.Tensor:
        return value.to_torch()


class IrSession:
    """A model that is loaded: a Runner. Where it keeps a cache, `request` gives one text its own memory."""

    def __init__(self, path: Path, options: Mapping[str, Any]):
        self.path = path
        self.memory: Memory = OpenvinoMemory()
        self.file = IrFile(path)
        self.file.refuse_other_weights()
        self.limits: Limits | None = self.file.limits
        self.inputs = {row["name"]: _slot(path, row) for row in self.file.inputs}
        self.flags: list[Slot] = []
        self.outputs = [row["name"] for row in self.file.outputs]
        self._checks = [check["output"] for check in self.limits.checks] if self.limits else []
        self._compiled = _compiled(path, options)
        self._request = self.request()

    def request(self) -> Any:
        return self._compiled.create_infer_request()

    def run(self, feeds: Mapping[str, Any], outputs: Sequence[str]) -> Sequence[Any]:
        """The outputs by these names. State stays as it is until `reset`."""
        self.check_sizes({name: value.shape() for name, value in feeds.items()})
        self.call(self._request, feeds)
        return self.results(self._request, outputs)

    def results(self, request: Any, outputs: Sequence[str]) -> list[Held]:
        return [_copied(request.get_tensor(name)) for name in outputs]

    def call(self, request: Any, feeds: Mapping[str, Any]) -> None:
        """Runs it in this request; conditions on data are tested."""
        try:
            request.infer({name: value.tensor() for name, value in feeds.items()})
        except Exception as error:  # OpenVINO has RuntimeError for everything
            raise self._refused(feeds, error) from error
        if self.limits is not None and self._checks:
            try:
                self.limits.check_data([bool(np.all(request.get_tensor(name).data)) for name in self._checks])
            except ExportError:
                request.reset_state()  # what this call left in buffers is of another case
                raise

    def shorten(self, request: Any, axes: Mapping[str, int | None], length: int) -> None:
        """Takes the end of caches away: those whose names begin so, along these axes."""
        import openvino

        for state in request.query_state():
            axis = next((axis for name, axis in axes.items() if state.name.startswith(name)), None)
            if axis is not None:
                kept = state.state.data.take(range(length), axis)
                state.state = openvino.Tensor(kept.copy())

    def copy_of(self, request: Any) -> Any:
        """A request with the same state."""
        copied = self.request()
        before = {state.name: state.state for state in request.query_state()}
        for state in copied.query_state():
            state.state = before[state.name]
        return copied

    def check_sizes(self, shapes: Mapping[str, Sequence[int]]) -> None:
        if self.limits is not None:
            self.limits.check_sizes([list(shapes[name]) for name in self.limits.inputs])

    def tensors(self, given: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        feeds = {name: self.memory.to_value(tensor) for name, tensor in given.items()}
        values = self.run(feeds, self.outputs)
        return {name: self.memory.to_tensor(value) for name, value in zip(self.outputs, values, strict=True)}

    def reset(self) -> None:
        self._request.reset_state()

    def takes(self) -> str:
        return f"it takes: {listed(slot for name, slot in self.inputs.items() if name != BEAMS)}"

    def _refused(self, feeds: Mapping[str, Any], error: Exception) -> ExportError:
        wrong = (misfit(self.inputs[name], value.shape()) for name, value in feeds.items() if name in self.inputs)
        text = " ".join(str(error).split())
        what = next(filter(None, wrong), f"OpenVINO does not run it on these inputs: {text}")
        return problem("E0301", f"{self.path.name}: {what}", self.takes())


def _compiled(path: Path, options: Mapping[str, Any]) -> Any:
    settings = _EXACT | {name: value for name, value in options.items() if name != "threads"}
    threads = options.get("threads") or (torch.get_num_threads() if os.environ.get("OMP_NUM_THREADS") else 0)
    if threads:
        settings.setdefault("INFERENCE_NUM_THREADS", threads)
    try:
        return core().compile_model(os.fspath(path), "CPU", settings)
    except RuntimeError as error:
        text = " ".join(str(error).split())
        raise problem("E0103", f"OpenVINO does not load {path}: {text}", "export it again") from error


def _copied(tensor: Any) -> Held:
    """The next call writes over what this one gave."""
    array = np.array(tensor.data)
    is_bf16 = tensor.element_type.get_type_name() == "bf16"
    return Held(array.view(np.int16) if is_bf16 else array, is_bf16=is_bf16)


def _slot(path: Path, row: Mapping[str, Any]) -> Slot:
    if row["dtype"] not in DTYPES:
        raise problem("E0106", f"{path}: the input {row['name']} is {row['dtype']}", "export it in another type")
    shape = [int(size) if size.isdecimal() else size for size in row["shape"]]
    return Slot(row["name"], DTYPES[row["dtype"]], shape)
