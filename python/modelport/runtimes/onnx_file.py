"""One file in onnxruntime: what it takes and gives, and tensors that go in and come out without being copied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from ..artifacts.artifact import ALL_LOGITS, Artifact
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


class _Bound:
    """A session with values that it reads and writes where they are, ready to be run again and again."""

    def __init__(self, session: Any, kept: Sequence[Any], names: Sequence[tuple[str, str]], wanted: Sequence[str]):
        """`wanted` are the other outputs."""
        self.kept, self.wanted = kept, list(wanted)
        self.shapes = {past: shape_of(value) for (past, _), value in zip(names, kept, strict=True)}
        self._session, self._binding = session, session.io_binding()
        self._fed: set[str] = set()
        self._bind_wanted()  # first, and so they come out first
        for (past, present), value in zip(names, kept, strict=True):
            self._binding.bind_ortvalue_input(past, value)
            self._binding.bind_ortvalue_output(present, value)

    def fits(self, kept: Sequence[Any], wanted: Sequence[str], feeds: Mapping[str, Any]) -> bool:
        """Whether it is ready for such a call, which may set fewer flags than the one before it."""
        return self.kept is kept and self.wanted == wanted and self._fed <= feeds.keys()

    def run(self, feeds: Mapping[str, Any]) -> list[Any]:
        """Values that are good until the next run; tensors made of them stay."""
        self._fed |= feeds.keys()
        for name, value in feeds.items():
            self._binding.bind_ortvalue_input(name, value)
        self._bind_wanted()
        self._session.run_with_iobinding(self._binding)
        from onnxruntime import OrtValue

        found = self._binding.get_outputs_as_ortvaluevector()
        return [OrtValue(found[i]) for i in range(len(self.wanted))]

    def _bind_wanted(self) -> None:
        """Anew for each run: what came out of the last one is the caller's."""
        for name in self.wanted:
            self._binding.bind_output(name, "cpu")


class OnnxFile:
    """A file that is loaded. `run` takes and gives OrtValues."""

    def __init__(self, path: Path, options: Mapping[str, Any]):
        self.path = path
        self.memory: Memory = OrtMemory()
        artifact = Artifact(path)
        self.limits = artifact.limits
        self.flags = [Slot(ALL_LOGITS, torch.bool, [])] if artifact.gives_last_logits else []
        self._call = CallLimits(self.limits)
        self._bound: _Bound | None = None
        flag = ALL_LOGITS if self.flags else None
        try:
            self._session = session_with_outputs(path, self._call.check_outputs, flag, **options)
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

    def run_into(
        self, feeds: Mapping[str, Any], outputs: Sequence[str], kept: Sequence[Any], names: Sequence[tuple[str, str]]
    ) -> Sequence[Any]:
        """As `run`; the values of `kept` are read and written where they are, under pairs of names of an input and an
        output. They are bound once for as long as the list is the same: a step has dozens."""
        call = self._call
        wanted, given = [*outputs, *call.further_outputs], {**feeds, **call.state}
        bound = self._bound
        if bound is None or not bound.fits(kept, wanted, given):
            bound = _Bound(self._session, kept, names, wanted)
        self._bound = None if call.state_outputs else bound  # which would be kept longer than until the next run
        call.check_sizes({**bound.shapes, **{name: shape_of(value) for name, value in feeds.items()}})
        try:
            results = bound.run(given)
        except Exception as error:
            raise self._refused(feeds, error) from error
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
