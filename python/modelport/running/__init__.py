"""Exported models, loaded and run: `modelport.load(folder)`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ..artifacts.pte import find_program
from ..artifacts.variants import ending_of
from ..base.errors import problem
from ..hub.folder import exported_folder
from ..runtimes.opening import Opening, runtime_of
from .folder import Folder, open_folder
from .ir_folder import open_ir
from .program_folder import open_program

__all__ = ["load", "open_folder"]


def load(
    folder: str | os.PathLike[str], *, dtype: str | None = None, threads: int | None = None, **session_options: Any
) -> Any:
    """The model of an exported folder, of one .onnx, .pte or .xml file, or of an export on the hub ("org/name").
    Where a folder has it in several types ("fp16", "q4"), `dtype` says which; without it, it is the most exact.

    A generative model is an instance of its own transformers class: `generate` does all that it does in PyTorch. Any
    other model is called with its inputs by name and gives its outputs by name. `session_options` are attributes of
    onnxruntime's SessionOptions, or entries of its configuration: `**{"session.disable_prepacking": "1"}`; of an
    OpenVINO model they are properties of its device: `INFERENCE_PRECISION_HINT="f16"`."""
    folder = exported_folder(folder, ending=ending_of(dtype))
    return open_model(open_any(folder, dtype), threads=threads, **session_options)


def open_any(path: str | os.PathLike[str], dtype: str | None = None) -> Folder:
    """Looks at the export that a path stands for, whatever its format."""
    program = find_program(path)
    return open_program(program) if program is not None else open_ir(path) or open_folder(path, dtype)


def open_model(folder: Folder, *, threads: int | None = None, **session_options: Any) -> Any:
    return OpeningModel(folder, threads=threads, **session_options).model()


class OpeningModel:
    """The model of a folder, whose files may be opened while the caller imports torch and what else it needs."""

    def __init__(self, folder: Folder, *, threads: int | None = None, **session_options: Any) -> None:
        self.folder, self._threads, self._settings = folder, threads, session_options
        self._opening: Opening | None = None
        if not runtime_of(next(iter(folder.files.values()))).needs_torch:
            self._opening = self._begun()

    def _begun(self) -> Opening:
        folder, threads = self.folder, self._threads
        given = self._settings | ({} if threads is None else {"threads": threads})
        runtime_of(next(iter(folder.files.values()))).check(given if folder.methods else self._settings)
        used = [folder.files[role] for role in folder.used()]
        return Opening(used, {"threads": threads or 0, **self._settings})

    def model(self) -> Any:
        from .classes import generating_class

        opening = self._opening or self._begun()
        found = generating_class(self.folder)
        if not isinstance(found, str):
            from .generating import generating_model

            return generating_model(self.folder, found, opening)
        from .plain import PlainModel

        return PlainModel(opening.runner(_only_file(self.folder)), self.folder.config, found)


def _only_file(folder: Folder) -> Path:
    if "model" not in folder.files:
        path = next(iter(folder.files.values()), folder.path)
        raise problem("E0106", f"{path} has no method forward", f"it has: {', '.join(folder.methods.values())}")
    return folder.files["model"]
