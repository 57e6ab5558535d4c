"""Methods of one ExecuTorch program that generate together, and how they are captured."""

from __future__ import annotations

import copy
import json
import os
import shutil
import tempfile
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, ClassVar

import torch

from ..artifacts.pte import NOTES
from ..artifacts.staging import Staging
from ..base.dtypes import float_dtype
from ..capturing.captured import Captured
from ..lazy.captured import CheckpointCaptured
from ..lazy.checkpoint_weights import CheckpointWeights
from ..lazy.entry import capture
from ..weights import lazy_weights
from .configs import ExecutorchConfig
from .executorch import ExecutorchProgram, write_programs
from .prepare import in_dtype


class ExecutorchComponents(dict[str, ExecutorchProgram]):
    """Methods of one program by name. `save` writes a `.pte` file, or a folder with one that `modelport.load` opens."""

    file_name: ClassVar[str] = "model.pte"

    def __init__(
        self, programs: Mapping[str, ExecutorchProgram], model: Any, constants: Mapping[str, Any], notes: list[str]
    ):
        super().__init__(programs)
        self.model, self.constant_methods = model, dict(constants)
        self.notes = [*notes, *(note for program in programs.values() for note in program.notes)]
        self.files: list[Path] = []

    @property
    def methods(self) -> list[str]:
        return list(self)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """What was at `path` stays whole if this fails."""
        with Staging(path, model=self.file_name) as staging:
            self.write(staging.folder / staging.name)
            if not staging.is_file:
                self.write_configs(staging.folder)
            self.files = staging.commit()[:1]
        return Path(path)

    def write(self, path: Path) -> dict[str, Any]:
        """The program alone, into a folder that is nobody's yet."""
        notes = next(iter(self.values())).origin() | {"generates": "yes"}
        constants = self.constant_methods | {NOTES: json.dumps(notes, sort_keys=True)}
        written = write_programs(path, self, constants, checks_as_outputs=False)
        self.files = [Path(file) for file in written["files"]]
        self.written = written["methods"]
        return written

    def write_configs(self, folder: Path) -> None:
        config = copy.deepcopy(self.model.config)
        config.architectures = [type(self.model).__name__]
        config.save_pretrained(folder)
        if getattr(self.model, "generation_config", None) is not None:
            self.model.generation_config.save_pretrained(folder)

    @property
    def buffer(self) -> bytes:
        """The whole file."""
        with tempfile.TemporaryDirectory() as folder:
            self.write(Path(folder) / self.file_name)
            return (Path(folder) / self.file_name).read_bytes()

    def write_to_file(self, open_file: IO[bytes]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            self.write(Path(folder) / self.file_name)
            with open(Path(folder) / self.file_name, "rb") as written:
                shutil.copyfileobj(written, open_file)


def captured_part(
    model: Any,
    part: torch.nn.Module,
    inputs: Mapping[str, Any],
    dynamic_shapes: Any,
    config: ExecutorchConfig,
) -> Captured:
    """A module that runs the model, or a part of it; weights that are in files stay there."""
    weights = lazy_weights.of(model)
    if not isinstance(weights, CheckpointWeights):
        dtype = float_dtype(config.dtype)
        inputs = inputs if dtype is None else in_dtype(inputs, dtype)
        return capture(part, inputs, dynamic_shapes=dynamic_shapes, dtype=dtype)
    lazy_weights.register(part, weights)
    try:
        with weights.unread():
            captured = capture(part, inputs, dynamic_shapes=dynamic_shapes)
        if weights.refused:
            warnings.warn(f"{weights.folder}: conditions on sizes that only values could decide are kept", stacklevel=3)
    finally:
        lazy_weights.unregister(part)
    return CheckpointCaptured(captured, weights.of(part))
