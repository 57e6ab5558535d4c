"""The page of one artifact or capture: its record and its runs, as the script of the page reads them."""

from __future__ import annotations

import os
from typing import Any

from .page import write_page
from .record import ModuleTree, Part, Place, Report, Value, bytes_by_type
from .runs import Runs


def write_report(report: Report, runs: Runs, path: str | os.PathLike[str]) -> None:
    write_page("report", report_data(report, runs), path)


def report_data(report: Report, runs: Runs) -> dict[str, Any]:
    """Rows are lists, not objects: of a graph with 20,000 nodes the names of columns would be most of the page."""
    attempts = runs.attempts or [[part.name, *attempt] for part in report.parts for attempt in part.attempts]
    return {
        "title": report.title,
        "path": report.path,
        "kind": report.kind,
        "facts": [[key, value] for key, value in report.facts.items()],
        "metadata": [[key, value] for key, value in report.metadata.items()],
        "files": [[name, size] for name, size in report.files.items()],
        "parts": [_part(part) for part in report.parts],
        "attempts": attempts,
        "check": runs.check,
        "steps": [[name, seconds, runs.memory.get(name)] for name, seconds in runs.seconds.items()],
        "notes": runs.notes,
    }


def _part(part: Part) -> dict[str, Any]:
    tree = ModuleTree(part)
    places: dict[Place, int] = {}
    nodes = [
        [node.op, home, places.setdefault(node.place, len(places)), node.text, list(node.inputs), list(node.outputs)]
        for node, home in zip(part.nodes, tree.node_homes, strict=True)
    ]
    weights = [
        [one.name, one.dtype, list(one.shape), one.parameters, one.bytes, home, one.file]
        for one, home in zip(part.weights, tree.weight_homes, strict=True)
    ]
    return {
        "name": part.name,
        "facts": [[key, value] for key, value in part.facts.items()],
        "inputs": [_value(value) for value in part.inputs],
        "outputs": [_value(value) for value in part.outputs],
        "axes": [
            [axis.name, axis.sizes, axis.example, [[r.what, r.place.line, r.place.function] for r in axis.reasons]]
            for axis in part.axes
        ],
        "limits": part.limits,
        "modules": [[m.path, m.parent, m.nodes, m.parameters, m.bytes] for m in tree.modules],
        "places": [[place.line, place.function] for place in places],
        "nodes": nodes,
        "weights": weights,
        "types": [[dtype, size] for dtype, size in bytes_by_type(part).items()],
        "operators": sorted(part.operators.items(), key=lambda row: (-row[1], row[0])),
        "fusions": [[row["fusion"], row["places"], row["why_not"]] for row in part.fusions],
        "delegates": [[row["backend"], row["nodes"], row["bytes"]] for row in part.delegates],
        "missing": part.missing,
    }


def _value(value: Value) -> list[Any]:
    return [value.name, value.dtype, None if value.shape is None else list(value.shape)]
