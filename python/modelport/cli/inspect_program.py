"""`modelport inspect`: what a `.pte` file has in it, without loading anything; ONNX files are in inspect_artifact."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..artifacts.artifact import find_models
from ..artifacts.ir import find_parts
from ..artifacts.pte import ProgramFile, find_program, read_program
from ..base.errors import ExportError
from ..base.printable import one_line
from ..hub.name import hub_name
from . import inspect_artifact, inspect_ir
from .console import Console
from .inspect_artifact import size_text


def run(args: Any, console: Console) -> bool:
    if _is_checkpoint(args):
        from . import inspect_checkpoint

        return inspect_checkpoint.run(args, console)
    parts = find_parts(args.artifact)
    if parts:
        return inspect_ir.run(parts, console)
    path = find_program(args.artifact)
    if path is None:
        return inspect_artifact.run(args, console)
    row = facts(path)
    console.result(text(row), row)
    return True


def _is_checkpoint(args: Any) -> bool:
    """A name of the hub, or a folder with a model and no artifact."""
    if hub_name(args.artifact, args.revision) is not None:
        return True
    folder = Path(args.artifact)
    if not (folder / "config.json").is_file() or find_program(folder) is not None or find_parts(folder):
        return False
    try:
        find_models(folder)
    except ExportError:
        return True
    return False


def facts(path: Path) -> dict[str, Any]:
    """The file as JSON shows it."""
    if not path.is_file():
        ProgramFile(path)  # says so
    summary = read_program(path)
    files = {name: ProgramFile(path, name) for name in summary["methods"]}
    first = next(iter(files.values()), None)
    return {
        "file": str(path),
        "bytes": path.stat().st_size,
        "methods": {name: _method(file) for name, file in files.items()},
        "constant_methods": {
            name: items for name, items in summary["constant_methods"].items() if not name.startswith("modelport_")
        },
        "constants": {"count": summary["constants"], "bytes": summary["constant_bytes"]},
        "state_bytes": summary["initial_bytes"],
        "external": summary["external"],
        "source": None if first is None else first.note("source"),
    }


def _method(file: ProgramFile) -> dict[str, Any]:
    summary = file.summary["methods"][file.method]
    limits = file.limits
    operators = sorted(summary["operators"].items(), key=lambda row: (-row[1], row[0]))
    return {
        "inputs": _with_bounds(file, summary["inputs"]),
        "outputs": file.outputs,
        "ranges": {} if limits is None else {name: list(bounds) for name, bounds in limits.ranges.items()},
        "limits": None if limits is None else limits.words,
        "instructions": summary["instructions"],
        "operators": dict(operators),
        "delegates": [
            {"backend": backend, "bytes": size, "nodes": nodes} for backend, size, nodes in summary["delegates"]
        ],
        "arena_bytes": sum(summary["arenas"]),
    }


def _with_bounds(file: ProgramFile, items: list[Any]) -> list[dict[str, Any]]:
    """Inputs with the largest sizes that their memory is for."""
    if not all(isinstance(item, dict) for item in items):
        return [{"name": f"input_{i}", "dtype": "number", "shape": [], "at_most": []} for i, _ in enumerate(items)]
    return [{**row, "at_most": item["sizes"]} for row, item in zip(file.inputs, items, strict=True)]


def text(row: dict[str, Any]) -> str:
    constants = row["constants"]
    lines = [f"{one_line(row['file'])} ({size_text(row['bytes'])}), a program for ExecuTorch"]
    for name, method in row["methods"].items():
        arena = f"arena {size_text(method['arena_bytes'])}"
        lines.append(f"method {one_line(name)}: {method['instructions']} instructions, {arena}")
        lines += _block("inputs", [_value(value) for value in method["inputs"]])
        lines += _block("outputs", [_value(value) for value in method["outputs"]])
        lines += _block("limits", method["limits"] or [])
        lines += _block("operators", [f"{count:6} {op}" for op, count in method["operators"].items()])
        lines += _block("delegates", [_delegate(one) for one in method["delegates"]])
    shown = [f"{name}: {', '.join(map(str, items))}" for name, items in row["constant_methods"].items()]
    lines += _block("settings", shown, indent="")
    lines.append(f"{constants['count']} constants, {size_text(constants['bytes'])}")
    if row["state_bytes"]:
        lines.append(f"state that calls change begins with {size_text(row['state_bytes'])}")
    if row["external"]:
        lines.append(f"{len(row['external'])} weights are in a file beside it")
    if row["source"]:
        lines.append(f"made of {one_line(row['source'])}")
    return "\n".join(lines)


def _delegate(one: dict[str, Any]) -> str:
    nodes = "" if one["nodes"] is None else f"{one['nodes']} {'node' if one['nodes'] == 1 else 'nodes'}, "
    return f"{one['backend']} ({nodes}{size_text(one['bytes'])})"


def _block(title: str, rows: list[str], indent: str = "  ") -> list[str]:
    return [f"{indent}{title}", *(f"{indent}  {one_line(row)}" for row in rows)] if rows else []


def _value(value: dict[str, Any]) -> str:
    sizes = value["shape"]
    if "at_most" in value:
        pairs = zip(sizes, value["at_most"], strict=False)
        sizes = [size if size.isdecimal() else f"{size} <= {most}" for size, most in pairs]
    most = " at most" if value.get("dynamic") else ""
    return f"{value['name']}: {value['dtype']}[{', '.join(sizes)}]{most}"
