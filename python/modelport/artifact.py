"""What an ONNX artifact says of itself, read without torch and without touching its weights."""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import Any

from . import _artifact
from .errors import problem
from .limits import Limits

further_outputs = _artifact.further_outputs


def find_models(path: str | os.PathLike[str]) -> list[Path]:
    """The `.onnx` files that a path stands for: itself, or those of a folder or of its `onnx` folder."""
    path = Path(path)
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise problem("E0103", f"{path}: no such file or folder", "name an .onnx file, or the folder of an export")
    for folder in (path, path / "onnx"):
        found = sorted(folder.glob("*.onnx"), key=lambda file: (file.name != "model.onnx", file.name))
        if found:
            return found
    raise problem(
        "E0103", f"{path}: no .onnx file in this folder", f"export the model first: modelport export onnx {path} OUT"
    )


def generates(path: str | os.PathLike[str]) -> bool:
    """Whether the files of a folder generate together: they say so, or one of them takes a past."""
    if not Path(path).is_dir():
        return False
    parts = [Artifact(file) for file in find_models(path)]
    said = any(part.note("generates") for part in parts)
    return said or ((Path(path) / "config.json").exists() and any(part.takes_a_past for part in parts))


def find_model(path: str | os.PathLike[str]) -> Path:
    """The one `.onnx` file of a path."""
    found = find_models(path)
    if len(found) > 1 and found[0].name != "model.onnx":
        names = ", ".join(file.name for file in found)
        raise problem("E0103", f"{path} has several models: {names}", "name the file")
    return found[0]


class Artifact:
    """One `.onnx` file: `summary` holds what modelport._artifact reads, with the nodes where they are asked for."""

    def __init__(self, path: str | os.PathLike[str], *, nodes: bool = False):
        self.path = Path(path)
        if not self.path.is_file():
            raise problem("E0103", f"{path}: no such file", "name an .onnx file")
        self.summary: dict[str, Any] = _artifact.read_onnx(os.fspath(self.path), nodes)

    @functools.cached_property
    def limits(self) -> Limits | None:
        """What the file is valid for; None in a file that does not say."""
        text = self.note("limits")
        return None if text is None else Limits(text)

    @property
    def ranges(self) -> dict[str, tuple[int, int | None]]:
        """The sizes that each axis may take, by its name."""
        return self.limits.ranges if self.limits else {}

    @property
    def guards(self) -> list[str]:
        return self.limits.conditions if self.limits else []

    @property
    def assumptions(self) -> list[str]:
        checks = self.limits.checks if self.limits else []
        return [f"{check['file']}:{check['line']} {check['what']}" for check in checks]

    @property
    def outputs(self) -> list[dict[str, Any]]:
        """Those of the model: what a buffer holds after a call is none of them."""
        state = {output for _, output in self.limits.state} if self.limits else set()
        return [row for row in self.summary["outputs"] if row["name"] not in state]

    @property
    def inputs(self) -> list[dict[str, Any]]:
        """Those of the model: a buffer that comes in with a value of its own is none of them."""
        state = {name for name, _ in self.limits.state} if self.limits else set()
        return [row for row in self.summary["inputs"] if row["name"] not in state]

    @property
    def takes_a_past(self) -> bool:
        return any(row["name"].startswith("past_") for row in self.summary["inputs"])

    def note(self, key: str) -> str | None:
        """A text that the exporter left: "source", "model_class", "dtype"."""
        return self.summary["metadata"].get(f"modelport.{key}")

    def weight_files(self) -> list[dict[str, Any]]:
        """The files that hold weights outside the model: how much of each is used, and whether it is all there."""
        used: dict[str, list[int]] = {}
        for weight in self.summary["weights"]:
            if weight["file"]:
                row = used.setdefault(weight["file"], [0, 0])
                row[0] += weight["bytes"]
                row[1] = max(row[1], weight["offset"] + weight["bytes"])
        rows = []
        for name, (size, end) in used.items():
            try:
                there = (self.path.parent / name).stat().st_size
            except OSError:
                there = -1
            state = "missing" if there < 0 else "too short" if there < end else "whole"
            rows.append({"file": name, "bytes": size, "state": state})
        return rows
