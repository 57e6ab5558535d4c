"""`modelport inspect` of an OpenVINO model: what its files have in them, without OpenVINO."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..artifacts.ir import IrFile
from ..base.printable import one_line
from .console import Console
from .inspect_artifact import size_text


def run(parts: dict[str, Path], console: Console) -> bool:
    rows = [facts(IrFile(path)) for path in parts.values()]
    console.result("\n\n".join(map(text, rows)), rows[0] if len(rows) == 1 else {"models": rows})
    return True


def facts(file: IrFile) -> dict[str, Any]:
    """The file as JSON shows it."""
    operators = sorted(file.summary["operators"].items(), key=lambda row: (-row[1], row[0]))
    return {
        "file": str(file.path),
        "bytes": file.path.stat().st_size,
        "inputs": file.inputs,
        "outputs": [row | {"shape": ["?" if n < 0 else str(n) for n in row["shape"]]} for row in file.outputs],
        "states": sorted(file.summary["states"]),
        "ranges": {name: list(bounds) for name, bounds in file.ranges.items()},
        "limits": file.limits.words if file.limits else None,
        "operators": dict(operators),
        "weight_bytes": file.weights.stat().st_size if file.weights.is_file() else None,
        "source": file.note("source"),
    }


def text(row: dict[str, Any]) -> str:
    lines = [f"{one_line(row['file'])} ({size_text(row['bytes'])}), a model for OpenVINO"]
    lines += _block("inputs", [_value(value) for value in row["inputs"]])
    lines += _block("outputs", [_value(value) for value in row["outputs"]])
    lines += _block("state that calls change", row["states"])
    lines += _block("limits", row["limits"] or [])
    lines += _block("operators", [f"{count:6} {name}" for name, count in row["operators"].items() if count])
    weights = row["weight_bytes"]
    lines.append("its weights are missing" if weights is None else f"weights {size_text(weights)}, in a file beside it")
    if row["source"]:
        lines.append(f"made of {one_line(row['source'])}")
    return "\n".join(lines)


def _block(title: str, rows: list[str]) -> list[str]:
    return [title, *(f"  {one_line(row)}" for row in rows)] if rows else []


def _value(value: dict[str, Any]) -> str:
    return f"{value['name']}: {value['dtype']}[{', '.join(value['shape'])}]"
