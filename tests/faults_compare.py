"""What is at OUT, in a form that two artifacts can be compared by."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from pathlib import Path
from typing import Any

from modelport.artifacts.artifact import Artifact, find_models
from modelport.base.errors import ExportError

NOTE = "notes/mine.txt"
_FRESH = re.compile("-[0-9a-f]{8}$")


@dataclasses.dataclass(frozen=True)
class Found:
    files: tuple[tuple[str, Any], ...]
    refused: bool = dataclasses.field(default=False, compare=False)  # by the readers, with a message


def state_at(out: Path) -> Found:
    """Of a file with weights beside it, what the model and each of its weights are, for files of weights may have other
    names for a moment; of a folder, every byte but those of the user."""
    try:
        find_models(out)
        refused = False
    except ExportError:
        refused = True
    if out.suffix == ".onnx":
        return Found(_model(out), refused)
    files = [path for path in sorted(out.rglob("*")) if path.is_file() and not _unfinished(path.relative_to(out))]
    named = ((str(path.relative_to(out)), _digest(path.read_bytes())) for path in files)
    return Found(tuple(row for row in named if row[0] != NOTE), refused)


def _model(file: Path) -> tuple[tuple[str, Any], ...]:
    artifact = Artifact(file, nodes=True)
    weights = []
    for row in artifact.summary["weights"]:
        name = _FRESH.sub("", row["file"])
        if row["file"]:
            data = (file.parent / row["file"]).read_bytes()[row["offset"] : row["offset"] + row["bytes"]]
            weights.append((row["name"], name, _digest(data)))
    said = {key: value for key, value in artifact.summary.items() if key != "weights"}
    return (("summary", repr(said)), ("weights", tuple(weights)))


def _unfinished(path: Path) -> bool:
    return any(part.endswith(".partial") for part in path.parts)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
