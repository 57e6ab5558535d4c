"""ExecuTorch's runtime: one method of a `.pte` file, called with tensors that it was checked to take.

The runtime ends the process where a value has not the kind or the type that the file names: every call is looked at
first."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from ..artifacts.limits import Limits
from ..artifacts.pte import REQUIREMENT, ProgramFile
from ..base.errors import ExportError, problem
from ..base.printable import listed
from ..base.versions import RUNTIME_TORCH, fits_executorch
from .runner import Memory, Slot, misfit

DTYPES = {
    "f64": torch.float64,
    "f32": torch.float32,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "i64": torch.int64,
    "i32": torch.int32,
    "i16": torch.int16,
    "i8": torch.int8,
    "u16": torch.uint16,
    "u8": torch.uint8,
    "bool": torch.bool,
}


def check_options(options: Mapping[str, Any]) -> None:
    """The runtime has to be there, and has no settings."""
    if options:
        what = f"ExecuTorch's runtime has no settings, and {', '.join(options)} is one"
        raise problem("E0306", what, "leave it out")
    runtime()


@functools.cache
def runtime() -> Any:
    """The runtime's module. `executorch.runtime` would import ExecuTorch's compiler, which takes seconds."""
    try:
        from executorch.extension.pybindings import _C
    except ImportError as error:
        raise problem(
            "E0307",
            "a .pte file runs in ExecuTorch's runtime, which is not installed",
            f"pip install {REQUIREMENT}",
            "export without a check: --no-check",
        ) from error
    if not fits_executorch(torch.__version__):
        raise problem(
            "E0307",
            f"{REQUIREMENT} runs beside torch {RUNTIME_TORCH} and newer, and torch {torch.__version__} is installed",
            "export without a check: --no-check",
            f"pip install 'torch=={RUNTIME_TORCH}.*', and a modelport for it",
        )
    with _stderr_shut():  # it tells there how it looks for the processor's cores
        _C._threadpool_get_thread_count()
    return _C


# Kernels that are in libraries of their own, by the namespace of their names.
_LIBRARIES = {
    "llama": "extension/llm/custom_ops/libcustom_ops_aot_lib.so",
    "quantized_decomposed": "kernels/quantized/libquantized_ops_aot_lib.so",
}


@functools.cache
def _load_kernels(namespace: str) -> None:
    library = Path(runtime().__file__).parents[2] / _LIBRARIES[namespace]
    try:
        torch.ops.load_library(library)
    except OSError as error:
        what = f"the program uses kernels of {namespace}::, whose library does not load: {error}"
        raise problem("E0103", what, f"pip install {REQUIREMENT}") from error


@contextmanager
def _stderr_shut() -> Iterator[None]:
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def as_fed(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor in memory as the runtime takes it: rows one after the other, strides of axes of size 1 too."""
    tensor = tensor.detach().cpu()
    usual: list[int] = []
    step = 1
    for size in reversed(tensor.shape):
        usual.insert(0, step)
        step *= max(size, 1)
    return tensor if list(tensor.stride()) == usual else tensor.clone(memory_format=torch.contiguous_format)


def refuse_other_type(slot: Slot, tensor: torch.Tensor, takes: str) -> None:
    if tensor.dtype != slot.dtype:
        given, wanted = (str(dtype).removeprefix("torch.") for dtype in (tensor.dtype, slot.dtype))
        what = f"{slot.name} is {given}, and the program takes {wanted}"
        raise problem("E0301", what, f"{slot.name}.to(torch.{wanted})", takes)


def check_sizes(limits: Limits, shapes: Sequence[Sequence[int]]) -> None:
    """As the limits do, and what to do where memory is set aside for less."""
    try:
        limits.check_sizes(shapes)
    except ExportError as error:
        first, *rest = error.diagnostics
        over = next((axis for axis in limits.ranges if first["what"].startswith(f"{axis} is ")), None)
        if over is None:
            raise
        way = f'export again with a larger bound: dims={{"{over}": ({limits.ranges[over][0]}, N)}}, or --dims'
        raise ExportError(
            f"{error}\n   way out   {way}", [first | {"ways_out": [*first["ways_out"], way]}, *rest]
        ) from error


class TensorMemory:
    """Values are tensors in torch's own memory."""

    def to_value(self, tensor: torch.Tensor) -> Any:
        return tensor

    def to_tensor(self, value: Any) -> torch.Tensor:
        return torch.as_tensor(value)


class ProgramSession:
    """A method that is loaded: a Runner, whose values are tensors."""

    def __init__(self, path: str | os.PathLike[str], method: str = "forward", beside: ProgramSession | None = None):
        """`beside` is another method of the file: it is loaded once for both."""
        self.path, self.method = Path(path), method
        self.memory: Memory = TensorMemory()
        self.file = ProgramFile(path, method)
        self.limits: Limits | None = self.file.limits
        self.inputs = {row["name"]: slot_of(row) for row in self.file.inputs}
        self.flags: list[Slot] = []
        checks = {check["output"] for check in self.limits.checks} if self.limits else set()
        self._names = [row["name"] for row in self.file.outputs]
        self.outputs = [name for name in self._names if name not in checks]
        self._checks = [name for name in self._names if name in checks]
        self._module: Any = None if beside is None else beside._module
        self._loaded()

    def _loaded(self) -> Any:
        if self._module is None:
            core = runtime()
            methods = self.file.summary["methods"].values()
            used = {kernel.partition("::")[0] for method in methods for kernel in method["operators"]}
            for namespace in sorted(used & _LIBRARIES.keys()):
                _load_kernels(namespace)
            try:
                self._module = core._load_for_executorch(os.fspath(self.path))
            except RuntimeError as error:
                text = " ".join(str(error).split())
                raise problem("E0103", f"ExecuTorch does not load {self.path}: {text}", "export it again") from error
        return self._module

    def values(self, given: Mapping[str, torch.Tensor]) -> list[Any]:
        """What the method gives, in its order. Sizes, types and conditions on data are held against its limits."""
        feeds = []
        for name, slot in self.inputs.items():
            if name not in given:
                raise problem("E0301", f"the input {name} is missing", self.takes())
            refuse_other_type(slot, given[name], self.takes())
            feeds.append(as_fed(given[name]))
        self._check_sizes(feeds)
        try:
            results = self._loaded().run_method(self.method, feeds)
        except RuntimeError as error:
            text = " ".join(str(error).split())
            raise problem("E0301", f"{self.path} does not run on these inputs: {text}", self.takes()) from error
        named = dict(zip(self._names, results, strict=True))
        if self.limits is not None and self._checks:
            try:
                self.limits.check_data([bool(torch.as_tensor(named[name]).all()) for name in self._checks])
            except Exception:
                self.reset()  # what this call left in buffers is of another case
                raise
        return [named[name] for name in self.outputs]

    def _check_sizes(self, feeds: Sequence[torch.Tensor]) -> None:
        if self.limits is not None:
            check_sizes(self.limits, [list(tensor.shape) for tensor in feeds])
            return
        for slot, most, tensor in zip(self.inputs.values(), self.file.largest, feeds, strict=True):
            what = misfit(slot, tensor.shape)
            over = [axis for axis, (size, top) in enumerate(zip(tensor.shape, most, strict=False)) if size > top]
            if what is None and over:
                axis = over[0]
                what = (
                    f"{slot.name} has size {tensor.shape[axis]} on axis {axis}, and the file takes up to {most[axis]}"
                )
            if what is not None:
                raise problem("E0304", what, self.takes())

    def run(self, feeds: Mapping[str, Any], outputs: Sequence[str]) -> Sequence[Any]:
        results = self.tensors(feeds)
        return [results[name] for name in outputs]

    def tensors(self, given: Mapping[str, torch.Tensor]) -> dict[str, Any]:
        """The outputs by name."""
        return dict(zip(self.outputs, self.values(given), strict=True))

    def reset(self) -> None:
        """Buffers that the model writes to, as they were when it was exported."""
        self._module = None

    def takes(self) -> str:
        return f"it takes: {listed(self.inputs.values())}"


def slot_of(row: Mapping[str, Any]) -> Slot:
    if row["dtype"] not in DTYPES:
        what = f"the input {row['name']} is {row['dtype']}, a type that ExecuTorch's runtime does not take"
        raise problem("E0106", what, "export to onnx or pt2")
    shape = [int(size) if size.isdecimal() else size for size in row["shape"]]
    return Slot(row["name"], DTYPES[row["dtype"]], shape)
