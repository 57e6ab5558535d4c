"""What the commands told of their runs as JSON (`--json`): the check by output and size, time and memory of each step.

An artifact holds none of it: its bytes are the same whenever it is written, and clocks are not."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

from ..base.errors import ExportError, problem
from ..base.json_text import parse_json

_WAY = "give what a command wrote: modelport export ... --json > run.json, or modelport check ... --json > check.json"


@dataclasses.dataclass
class Runs:
    """All files together; of two checks the last counts."""

    check: dict[str, Any] | None = None  # as CheckReport.to_dict or QualityReport.to_dict has it
    seconds: dict[str, float] = dataclasses.field(default_factory=dict)
    memory: dict[str, int] = dataclasses.field(default_factory=dict)  # the most that a step used, in bytes
    attempts: list[list[str]] = dataclasses.field(default_factory=list)  # part, what, why, what became of it
    notes: list[str] = dataclasses.field(default_factory=list)


def _unreadable(what: str) -> ExportError:
    return problem("E0103", what, _WAY)


def read_runs(files: list[str]) -> Runs:
    runs = Runs()
    for file in files:
        _take(runs, _read(file), file)
    return runs


def _read(file: str | os.PathLike[str]) -> dict[str, Any]:
    try:
        found = parse_json(Path(file).read_text(encoding="utf-8"))
    except (ValueError, UnicodeDecodeError) as error:
        raise _unreadable(f"{file} is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise _unreadable(f"{file} is not the JSON of a command")
    return found


def _take(runs: Runs, found: dict[str, Any], file: str) -> None:
    is_check = "rows" in found or "perplexity" in found
    if not is_check and "seconds" not in found and "errors" not in found:
        raise _unreadable(f"{file} has neither a check nor the steps of an export")
    check = found if is_check else found.get("check")
    if check is not None:
        runs.check = _check(check, file)
    runs.seconds |= _numbers(found.get("seconds"), file)
    runs.memory |= {name: int(size) for name, size in _numbers(found.get("memory"), file).items()}
    attempts = found.get("attempts") or {}
    attempts = attempts if isinstance(attempts, dict) else {"": attempts}
    for part, rows in attempts.items():
        runs.attempts += [[part, *map(str, row)] for row in rows if isinstance(row, list) and len(row) == 3]
    runs.notes += [str(note) for note in found.get("notes") or []]
    runs.notes += [str(row.get("what")) for row in found.get("errors") or [] if isinstance(row, dict)]


def _numbers(found: Any, file: str) -> dict[str, float]:
    if found is None:
        return {}
    if not isinstance(found, dict) or not all(isinstance(value, int | float) for value in found.values()):
        raise _unreadable(f"{file}: its steps cannot be read")
    return found


_COLUMNS: dict[str, Any] = {
    "size": str,
    "output": str,
    "absolute": (int, float, str),
    "relative": (int, float, str),
    "axes": dict,
}


def _check(found: Any, file: str) -> dict[str, Any]:
    rows = found.get("rows", []) if isinstance(found, dict) else None
    if not isinstance(rows, list) or not all(
        isinstance(row, dict) and all(isinstance(row.get(key), kind) for key, kind in _COLUMNS.items()) for row in rows
    ):
        raise _unreadable(f"{file}: its check cannot be read")
    return found
