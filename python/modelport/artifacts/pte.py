"""What a `.pte` file says of itself, read without torch and without ExecuTorch."""

from __future__ import annotations

import functools
import json
import os
from pathlib import Path
from typing import Any

from .. import _artifact
from ..base.errors import problem
from ..base.json_text import parse_json
from .limits import Limits

REQUIREMENT = "executorch==1.5.1"
NOTES = "modelport_notes"  # a constant method: where the program came from, as JSON
_LIMITS, _OUTPUTS = "modelport_limits", "modelport_outputs"


def without_schemas(what: str) -> Exception:
    """That the extension was built where ExecuTorch's package was not installed."""
    return problem(
        "E0307",
        what,
        f"pip install --no-deps {REQUIREMENT}, and install modelport again from its source folder: "
        "pip install --no-build-isolation .",
    )


def read_program(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Methods with inputs, outputs, operators, delegates and arenas; constant methods; constants in bytes."""
    read = getattr(_artifact, "read_executorch", None)
    if read is None:
        raise without_schemas(f"{path}: this modelport was built without ExecuTorch's schemas and cannot read it")
    return read(os.fspath(path))


def find_program(path: str | os.PathLike[str]) -> Path | None:
    """The `.pte` file that a path stands for: itself, or the one of a folder that has no ONNX model."""
    path = Path(path)
    if path.suffix == ".pte" and not path.is_dir():
        return path
    if not path.is_dir() or any(path.glob("*.onnx")) or any(path.glob("onnx/*.onnx")):
        return None
    if _artifact.is_half_replaced(os.fspath(path)):
        what = f"{path}: an export into this folder was killed, or is not done"
        raise problem("E0103", what, "export it again: modelport export executorch MODEL OUT")
    found = sorted(path.glob("*.pte"), key=lambda file: (file.name != "model.pte", file.name))
    if len(found) > 1 and found[0].name != "model.pte":
        names = ", ".join(file.name for file in found)
        raise problem("E0106", f"{path} has several programs: {names}", "name the file")
    return found[0] if found else None


class ProgramFile:
    """One method of a `.pte` file: `summary` holds what is read of the whole file."""

    def __init__(self, path: str | os.PathLike[str], method: str = "forward"):
        self.path, self.method = Path(path), method
        if not self.path.is_file():
            raise problem("E0103", f"{path}: no such file", "name a .pte file")
        self.summary = read_program(path)
        if method not in self.summary["methods"]:
            known = ", ".join(self.summary["methods"]) or "none"
            raise problem("E0106", f"{path} has no method {method}", f"it has: {known}")

    @functools.cached_property
    def limits(self) -> Limits | None:
        """What the method is valid for; None in a file that does not say."""
        record = self.limit_record
        return None if record is None else Limits(json.dumps(record))

    @property
    def limit_record(self) -> dict[str, Any] | None:
        """The same as the file has it."""
        return self._record(_LIMITS).get(self.method)

    @property
    def inputs(self) -> list[dict[str, Any]]:
        """Name, type and shape of each; a size is a number or what it is called."""
        record = self.limit_record
        if record is not None:
            rows = [{**row, "shape": [str(size) for size in row["shape"]]} for row in record["inputs"]]
            if len(rows) == len(self._tensors("inputs")):
                return rows
        return [self._unnamed("input", i, item) for i, item in enumerate(self._tensors("inputs"))]

    @property
    def largest(self) -> list[list[int]]:
        """The largest sizes of each input."""
        return [item["sizes"] for item in self._tensors("inputs")]

    @property
    def outputs(self) -> list[dict[str, Any]]:
        """Name, type and largest sizes of each."""
        items = self.summary["methods"][self.method]["outputs"]
        names = self._record(_OUTPUTS).get(self.method)
        rows = [self._unnamed("output", i, item) for i, item in enumerate(items)]
        if isinstance(names, list) and len(names) == len(rows):
            rows = [{**row, "name": str(name)} for row, name in zip(rows, names, strict=True)]
        return rows

    @property
    def operators(self) -> dict[str, int]:
        """Kernels that the method calls, and how often."""
        return self.summary["methods"][self.method]["operators"]

    def note(self, key: str) -> str | None:
        """A text that the exporter left: "source", "model_class", "dtype"."""
        found = self._record(NOTES).get(key)
        return found if isinstance(found, str) else None

    def _tensors(self, side: str) -> list[dict[str, Any]]:
        items = self.summary["methods"][self.method][side]
        if not all(isinstance(item, dict) for item in items):
            what = f"{self.path}: {self.method} has {side} that are no tensors"
            raise problem("E0103", what, "run it in ExecuTorch's own runtime: executorch.runtime")
        return items

    @staticmethod
    def _unnamed(kind: str, index: int, item: Any) -> dict[str, Any]:
        name = f"{kind}_{index}"
        if not isinstance(item, dict):
            return {"name": name, "dtype": "number", "shape": []}
        sizes = [
            f"{name}_{axis}" if item["dynamic"] and kind == "input" else str(size)
            for axis, size in enumerate(item["sizes"])
        ]
        row = {"name": name, "dtype": item["dtype"], "shape": sizes}
        return row | {"dynamic": item["dynamic"]} if kind == "output" else row

    def _record(self, method: str) -> dict[str, Any]:
        items = self.summary["constant_methods"].get(method)
        if items is None:
            return {}
        try:
            found = parse_json(items[0])
        except (IndexError, TypeError, ValueError):
            found = None
        if not isinstance(found, dict):
            raise problem("E0103", f"{self.path}: its method {method} cannot be read", "export it again")
        return found
