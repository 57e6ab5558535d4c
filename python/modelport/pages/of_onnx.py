"""The record of ONNX files: nodes with module and line, weights where they lie, limits with who set them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from ..artifacts.artifact import Artifact, data_state, find_models
from ..base.json_text import parse_json
from .contents import Contents, of_file
from .record import Axis, Node, Part, Place, Reason, Report, Value, Weight, range_text

_OWN = "modelport."


def onnx_report(path: str) -> Report:
    found = [Artifact(file, nodes=True) for file in find_models(path)]
    first = found[0]
    facts = {
        "format": "ONNX",
        "class": first.note("model_class") or "",
        "made of": first.note("source") or "",
        "producer": f"{first.summary['producer']} {first.summary['producer_version']}".strip(),
    }
    files: dict[str, int] = {}
    for artifact in found:
        files[artifact.path.name] = artifact.path.stat().st_size
        for row in artifact.weight_files():
            whole = f"{row['file']}{'' if row['state'] == 'whole' else ' (' + row['state'] + ')'}"
            files[whole] = files.get(whole, 0) + row["bytes"]
    return Report(
        title=first.note("model_class") or Path(path).name or str(path),
        path=str(path),
        kind="ONNX",
        facts={key: value for key, value in facts.items() if value},
        parts=[_part(artifact) for artifact in found],
        files=files,
        metadata={key: value for key, value in first.summary["metadata"].items() if not key.startswith(_OWN)},
        whole=[str(artifact.path) for artifact in found],
    )


def _part(artifact: Artifact) -> Part:
    summary = artifact.summary
    opsets = ", ".join(f"{domain or 'ai.onnx'} {version}" for domain, version in summary["opsets"].items())
    limits = artifact.limits
    record = limit_record(artifact.note("limits"))
    return Part(
        name=artifact.path.stem,
        facts={"opset": opsets, "IR version": str(summary["ir_version"])},
        inputs=[value_of(row) for row in summary["inputs"]],
        outputs=[value_of(row) for row in summary["outputs"]],
        axes=axes_of(record),
        limits=limits.words if limits else [],
        nodes=[_node(row) for row in summary["nodes"]],
        weights=[_weight(artifact.path, row) for row in summary["weights"]],
        operators=dict(summary["operators"]),
        fusions=_fusions(artifact.note("fusions")),
        missing=[] if limits else ["The file does not say what it is valid for."],
    )


def value_of(row: dict[str, Any]) -> Value:
    shape = row["shape"]
    return Value(row["name"], row["dtype"], None if shape is None else tuple(map(str, shape)))


def _node(row: tuple[str, str, str, list[str], list[str], str]) -> Node:
    op, name, source, inputs, outputs, attributes = row
    # We name a node "module.path/Op_12"; others have slashes for dots, or nothing that could be a path.
    module = name.rpartition("/")[0].strip("/").replace("/", ".")
    if not all(piece.isidentifier() or piece.isdecimal() for piece in module.split(".")):
        module = ""
    return Node(op, module, Place(source), tuple(inputs), tuple(outputs), attributes)


def _weight(model: Path, row: dict[str, Any]) -> Weight:
    contents: Contents | None = None
    start, size = row["offset"], row["bytes"]
    if not row["file"] and start:
        contents = of_file(model, start, size)
    elif row["file"] and data_state(model, row["file"], start + size) == "whole":
        contents = of_file(model.parent / row["file"], start, size)
    return Weight(row["name"], row["dtype"], tuple(row["shape"]), row["bytes"], row["file"], contents)


def _fusions(text: str | None) -> list[dict[str, Any]]:
    try:
        rows = parse_json(text or "[]")
    except ValueError:
        return []
    keys = {"fusion", "places", "why_not"}
    return [row for row in rows if isinstance(row, dict) and keys <= row.keys()] if isinstance(rows, list) else []


def limit_record(text: str | None) -> dict[str, Any]:
    """The limits with what only the record itself has: who set them. They were read before, so that they parse."""
    return {} if text is None else parse_json(text)


def axes_of(record: dict[str, Any]) -> list[Axis]:
    axes = []
    for dim in record.get("dims", []):
        reasons = []
        for end, words in (("lo", "at least"), ("hi", "at most")):
            place = place_of(dim.get(f"{end}_where"))
            if place.line:
                reasons.append(Reason(f"{words} {dim.get(end)}", place))
        for row in record.get("conditions", []):
            if re.search(rf"\b{re.escape(dim['name'])}\b", row["condition"]):
                reasons.append(Reason(row["condition"], place_of(row.get("where"))))
        axes.append(Axis(dim["name"], range_text(dim.get("lo"), dim.get("hi")), dim.get("hint"), tuple(reasons)))
    return axes


def place_of(row: dict[str, Any] | None) -> Place:
    """Of what has file, line and function."""
    if not row or not row.get("line"):
        return Place()
    return Place(f"{row['file']}:{row['line']}", row.get("function") or "")
