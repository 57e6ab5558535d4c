"""`modelport inspect`: what lies at a path, as text or as a page. Each format has its own way to be shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..base.errors import problem
from ..base.printable import one_line
from ..quick_imports.command import import_quickly
from . import inspect_program
from .console import Console
from .inspect_artifact import size_text

_TOP = 10


def run(args: Any, console: Console) -> bool:
    if args.report and not args.html:
        raise problem("E0306", "--report is for the page", "name the page to write: --html FILE")
    is_graph = args.artifact.endswith(".pt2") and Path(args.artifact).is_file()
    if is_graph:
        import_quickly()  # its reader needs torch
    if args.html:
        return _page(args, console)
    return _graph(args, console) if is_graph else inspect_program.run(args, console)


def _page(args: Any, console: Console) -> bool:
    from ..pages.reading import read_report
    from ..pages.report import write_report
    from ..pages.runs import read_runs

    write_report(read_report(args.artifact), read_runs(args.report), args.html)
    size = Path(args.html).stat().st_size
    console.result(f"wrote {args.html} ({size_text(size)})", {"ok": True, "files": {args.html: size}})
    return True


def _graph(args: Any, console: Console) -> bool:
    """A `.pt2`, as text."""
    from ..pages.reading import read_report

    report = read_report(args.artifact)
    part = report.parts[0]
    weights = sorted(part.weights, key=lambda one: (-one.bytes, one.name))
    operators = sorted(part.operators.items(), key=lambda row: (-row[1], row[0]))
    row: dict[str, Any] = {
        "file": report.path,
        "bytes": next(iter(report.files.values())),
        "inputs": [{"name": one.name, "dtype": one.dtype, "shape": list(one.shape or ())} for one in part.inputs],
        "outputs": [one.name for one in part.outputs],
        "axes": {axis.name: axis.sizes for axis in part.axes},
        "limits": part.limits,
        "nodes": part.node_count,
        "operators": dict(operators),
        "weights": {"count": len(weights), "bytes": sum(one.bytes for one in weights)},
    }
    lines = [f"{report.path} ({size_text(row['bytes'])}), a program for PyTorch"]
    lines += _block("inputs", [f"{one['name']}: {one['dtype']}[{', '.join(one['shape'])}]" for one in row["inputs"]])
    lines += _block("outputs", row["outputs"])
    lines += _block("axes", [f"{name} is {sizes}" for name, sizes in row["axes"].items()])
    lines += _block("limits", part.limits)
    lines += _block(f"{row['nodes']} nodes", [f"{count:6} {op}" for op, count in operators])
    shown = [f"{size_text(one.bytes):>9} {one.name} {one.dtype}{list(one.shape)}" for one in weights[:_TOP]]
    lines += _block(f"{len(weights)} weights, {size_text(row['weights']['bytes'])}", shown)
    if len(weights) > _TOP:
        lines.append(f"  and {len(weights) - _TOP} more")
    console.result("\n".join(lines), row)
    return True


def _block(title: str, rows: list[str]) -> list[str]:
    return [title, *(f"  {one_line(row)}" for row in rows)] if rows else []
