"""Programs for backends of ExecuTorch that its own tools compile for: what was captured goes to their partitioner."""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import IO, Any

from ..artifacts.staging import Staging
from ..capturing.captured import Captured
from ..runtimes.executorch_compilers import METHOD, compiled, tools_for
from .configs import ExecutorchConfig
from .exported_program import ExportedProgram


class CompiledProgram:
    """What was captured, compiled by ExecuTorch for another backend than ours: `save` writes it."""

    def __init__(self, captured: Captured, config: ExecutorchConfig):
        self.captured, self.config = captured, config
        tools_for(str(config.backend))
        self.methods = [METHOD]
        self.notes = [f"{config.backend} computes: its values were not compared with the model's"]
        self.files: list[Path] = []

    @functools.cached_property
    def exported(self) -> ExportedProgram:
        """torch's own object, with the example that the model was captured with."""
        return ExportedProgram(self.captured)

    @functools.cached_property
    def _compiled(self) -> Any:
        return compiled(self.exported, str(self.config.backend))

    @property
    def buffer(self) -> bytes:
        return bytes(self._compiled.buffer)

    def write_to_file(self, open_file: IO[bytes]) -> None:
        self._compiled.write_to_file(open_file)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes the program. What was at `path` stays whole if that fails."""
        with Staging(path, is_file=True) as staging:
            self.write(staging.folder / staging.name)
            self.files = staging.commit()[:1]
        return Path(path)

    def write(self, path: Path) -> None:
        """As `save`, into a folder that is nobody's yet."""
        with open(path, "wb") as file:
            self._compiled.write_to_file(file)

    def report(self) -> str:
        return self.captured.report()
