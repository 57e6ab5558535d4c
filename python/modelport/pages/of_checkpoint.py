"""The record of a checkpoint folder: what its configuration says, and the weights of its safetensors files."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

from ..base.errors import problem
from ..base.json_text import parse_json
from .contents import of_file
from .record import Part, Report, Weight

_LONGEST_HEADER = 100_000_000  # as safetensors has it


def checkpoint_report(folder: Path) -> Report:
    config = _json(folder / "config.json") if (folder / "config.json").is_file() else {}
    files = sorted(folder.glob("*.safetensors"))
    classes = config.get("architectures")
    name = str(classes[0]) if isinstance(classes, list) and classes else folder.name
    weights = [weight for file in files for weight in _weights(file)]
    facts = {key: str(value) for key, value in sorted(_flat(config).items())}
    return Report(
        title=name,
        path=str(folder),
        kind="Checkpoint",
        facts={"format": "checkpoint"},
        parts=[Part(name="model", weights=weights, missing=["A checkpoint has weights, and no graph."])],
        files={file.name: file.stat().st_size for file in files},
        metadata=facts,
    )


def _flat(value: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    rows: dict[str, Any] = {}
    for key, item in value.items():
        rows |= _flat(item, f"{prefix}{key}.") if isinstance(item, dict) and item else {f"{prefix}{key}": item}
    return rows


def _json(file: Path) -> dict[str, Any]:
    try:
        found = parse_json(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise problem("E0103", f"{file} is no JSON: {error}", "use a whole checkpoint") from error
    return found if isinstance(found, dict) else {}


def _weights(file: Path) -> list[Weight]:
    broken = problem("E0103", f"{file} is no safetensors file, or a broken one", "download the checkpoint again")
    with file.open("rb") as opened:
        head = opened.read(8)
        length = struct.unpack("<Q", head)[0] if len(head) == 8 else 0
        if not 0 < length <= min(_LONGEST_HEADER, file.stat().st_size):
            raise broken
        text = opened.read(length)
    try:
        rows = parse_json(text.decode())
        return [_weight(file, 8 + length, name, row) for name, row in rows.items() if name != "__metadata__"]
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise broken from error


def _weight(file: Path, start: int, name: str, row: dict[str, Any]) -> Weight:
    first, end = map(int, row["data_offsets"])
    shape = tuple(int(size) for size in row["shape"])
    return Weight(name, str(row["dtype"]), shape, end - first, file.name, of_file(file, start + first, end - first))
