"""A program for ExecuTorch: what was captured, in the runtime's own dialect, with memory for its largest sizes."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, ClassVar

import torch

from ..artifacts.limits import Limits
from ..artifacts.pte import NOTES, without_schemas
from ..artifacts.staging import Staging
from ..base import core
from ..base.errors import problem
from ..capturing.captured import Captured
from ..lazy.captured import CheckpointCaptured, LazyCaptured, WeightStreams
from ..runtimes.executorch import ProgramSession, as_fed, check_sizes, refuse_other_type, slot_of
from .configs import ExecutorchConfig
from .executorch_bounds import bounds_of, one_name_an_axis, within_memory
from .executorch_constants import of_detection
from .executorch_file import Method, lower, write_executorch
from .exported_program import ExportedProgram
from .onnx_program import warn_of_overflows

_METHOD = "forward"


class ExecutorchProgram:
    """A program for ExecuTorch: `save` writes it, a call runs it in ExecuTorch's runtime, `buffer` is the file."""

    file_name: ClassVar[str] = "model.pte"

    def __init__(self, captured: Captured, config: ExecutorchConfig, model_config: Any = None):
        """`model_config` may say how many positions the model has."""
        if not hasattr(core._modelport, "write_executorch"):
            raise without_schemas("this modelport was built without ExecuTorch's schemas")
        self.captured, self.config, self._model_config = captured, config, model_config
        program = captured.lazy_program
        self.lowered, self.left = lower(core._modelport.rename_axes(program, one_name_an_axis(program)), config)
        bounds = bounds_of(self.lowered.dims(), config, model_config)
        self.bounds = within_memory(bounds, lambda sizes: self._measured(sizes)["arena_bytes"])
        for bound in self.bounds:
            self.lowered.set_range(bound.axis, bound.low, bound.high)
        self._slots = {
            name: slot_of({"name": name, "dtype": dtype, "shape": sizes})
            for name, dtype, sizes in self.lowered.inputs()
        }

    def _measured(self, sizes: Mapping[str, int]) -> dict[str, Any]:
        """What the method takes if its axes are at most these sizes."""
        return core._modelport.measure_executorch(dataclasses.replace(self.method(_METHOD), bounds=sizes).row())

    @property
    def methods(self) -> list[str]:
        return [_METHOD]

    @property
    def input_names(self) -> list[str]:
        return list(self._slots)

    @property
    def output_names(self) -> list[str]:
        return self.lowered.output_names()

    @property
    def node_count(self) -> int:
        return self.lowered.node_count()

    @functools.cached_property
    def limits(self) -> Limits:
        """What the program is valid for; a call outside is refused."""
        frozen, checks = self.captured.frozen(), self.config.checks_as_outputs
        return Limits(core._modelport.executorch_limits(self.lowered, {}, frozen, checks))

    @property
    def notes(self) -> list[str]:
        """Bounds of axes that nobody asked for, and what the file does not test, in words."""
        notes = [str(bound) for bound in self.bounds if not bound.asked]
        notes += [
            f"size {name}, which data decides, is at most {most}: a run that needs more fails; "
            f'dims={{"{name}": (1, N)}} takes another'
            for name, most in self._measured({})["assumed_bounds"].items()
        ]
        if self.captured.assumptions and not self.config.checks_as_outputs:
            count = len(self.captured.assumptions)
            notes.append(
                f"the model looked at its data in {count} {'place' if count == 1 else 'places'}, and the file does not "
                "test that the data is of the same case; checks_as_outputs=True, or --checks-as-outputs, adds outputs "
                "that say so"
            )
        return notes

    def report(self) -> str:
        """What the capture found out, the bounds that memory is planned with, and what XNNPACK leaves to kernels."""
        left = [f"{count} {op} not in XNNPACK: {why}" for op, why, count in self.left]
        return "\n".join([self.captured.report(), *map(str, self.bounds), *left])

    def feeds(self, inputs: Mapping[str, Any]) -> dict[str, torch.Tensor]:
        """The model's own inputs, nested or already flat, as the runtime takes them, in its order."""
        takes = f"it takes: {', '.join(map(str, self._slots.values()))}"
        tensors = {}
        for name, given in self.captured.tensors_by_name(inputs, takes=takes).items():
            refuse_other_type(self._slots[name], given, takes)
            tensors[name] = as_fed(given)
        check_sizes(self.limits, [list(tensors[name].shape) for name in self.limits.inputs])
        return tensors

    def __call__(self, **inputs: Any) -> Any:
        """Runs the program in ExecuTorch's runtime and gives the model's own output structure. Buffers that the model
        writes to are kept from call to call; data of another case than the example's is refused."""
        return self.captured.result_of(self._session.values(self.feeds(inputs)))

    def reset(self) -> None:
        """Buffers as they were when the model was exported."""
        self._session.reset()

    @functools.cached_property
    def _session(self) -> ProgramSession:
        self._home = tempfile.TemporaryDirectory()  # as long as the program, which the runtime reads from there
        path = Path(self._home.name) / self.file_name
        self.write(path, checks_as_outputs=True)
        return ProgramSession(path)

    def exported_program(self, method_name: str = _METHOD) -> ExportedProgram:
        """What was captured as torch has it, by the name that ExecuTorch's own object gives it."""
        if method_name != _METHOD:
            raise problem("E0306", f"the program has no method {method_name!r}", f"exported_program({_METHOD!r})")
        return ExportedProgram(self.captured)

    @property
    def buffer(self) -> bytes:
        """The whole file."""
        with tempfile.TemporaryDirectory() as folder:
            self.write(Path(folder) / self.file_name)
            return (Path(folder) / self.file_name).read_bytes()

    def write_to_file(self, open_file: IO[bytes]) -> None:
        """Writes the file into one that is open, as ExecuTorch's own program does."""
        with tempfile.TemporaryDirectory() as folder:
            self.write(Path(folder) / self.file_name)
            with open(Path(folder) / self.file_name, "rb") as written:
                shutil.copyfileobj(written, open_file)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes the program. What was at `path` stays whole if that fails."""
        with Staging(path, is_file=True) as staging:
            self.write(staging.folder / staging.name)
            self.files = staging.commit()[:1]
        return Path(path)

    def write(self, path: Path, *, checks_as_outputs: bool | None = None) -> dict[str, Any]:
        """As `save`, into a folder that is nobody's yet. Returns what the writer says: of each method the bytes of its
        arena and of its state."""
        checks = self.config.checks_as_outputs if checks_as_outputs is None else checks_as_outputs
        constants = {NOTES: json.dumps(self.origin(), sort_keys=True)}
        constants |= of_detection(self._model_config, self.output_names, self.config.image_size)
        written = write_programs(path, {_METHOD: self}, constants, checks)
        self.files = [Path(file) for file in written["files"]]
        self.written = written["methods"]
        return written

    def method(self, name: str) -> Method:
        """As the writer takes it, under this name."""
        captured = self.captured
        streams = captured.streams() if isinstance(captured, LazyCaptured) else WeightStreams()
        return Method(name, self.lowered, frozen=captured.frozen(), places=streams.places, made=streams.made)

    def origin(self) -> dict[str, str]:
        """Where the program came from, for a check that makes the model again."""
        source = getattr(self.captured, "source", None)
        return ({"source": os.path.abspath(source)} if source else {}) | dict(getattr(self.captured, "origin", {}))

    def __str__(self) -> str:
        return self.lowered.text()


def write_programs(
    path: Path, programs: Mapping[str, ExecutorchProgram], constants: Mapping[str, Any], checks_as_outputs: bool
) -> dict[str, Any]:
    """One file with a method for each program."""
    methods = [program.method(name) for name, program in programs.items()]
    written = write_executorch(path, methods, constant_methods=constants, checks_as_outputs=checks_as_outputs)
    for program in programs.values():
        if isinstance(program.captured, CheckpointCaptured):
            program.captured.refuse_changed()
    warn_of_overflows({name: (over, to) for name, _, to, over, _ in written["losses"] if over})
    return written
