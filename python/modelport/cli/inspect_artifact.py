"""`modelport inspect`: what an ONNX file has in it, without loading anything."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from ..artifacts.artifact import Artifact, find_all_models
from ..base.printable import one_line
from .console import Console

_TOP = 10
_SINGLE_TOKENS = "attention of single tokens for "  # a fusion, by a processor's name
_SMALL = 1 << 20  # bytes of weights that are not worth a word


def run(args: Any, console: Console) -> bool:
    found = [Artifact(path) for path in find_all_models(args.artifact)]
    rows = [facts(artifact) for artifact in found]
    console.result("\n\n".join(map(text, rows)), rows[0] if len(rows) == 1 else {"models": rows})
    return True


def facts(artifact: Artifact) -> dict[str, Any]:
    """The summary as JSON shows it."""
    summary = artifact.summary
    weights = sorted(summary["weights"], key=lambda w: (-w["bytes"], w["name"]))
    operators = sorted(summary["operators"].items(), key=lambda row: (-row[1], row[0]))
    return {
        "file": str(artifact.path),
        "bytes": artifact.path.stat().st_size,
        "producer": f"{summary['producer']} {summary['producer_version']}".strip(),
        "ir_version": summary["ir_version"],
        "opsets": {domain or "ai.onnx": version for domain, version in summary["opsets"].items()},
        "inputs": summary["inputs"],
        "outputs": summary["outputs"],
        "ranges": {name: list(bounds) for name, bounds in artifact.ranges.items()},
        "guards": artifact.guards,
        "assumptions": artifact.assumptions,
        "fusions": json.loads(artifact.note("fusions") or "[]"),
        "source": artifact.note("source"),
        "nodes": sum(summary["operators"].values()),
        "operators": dict(operators),
        "weights": {
            "count": len(weights),
            "bytes": sum(w["bytes"] for w in weights),
            "files": artifact.weight_files(),
            "largest": weights[:_TOP],
        },
    }


def text(row: dict[str, Any]) -> str:
    row = _plain(row)
    opsets = ", ".join(f"{domain} {version}" for domain, version in row["opsets"].items())
    lines = [f"{row['file']} ({size_text(row['bytes'])}) by {row['producer'] or 'unknown'}, opset {opsets}"]
    lines += _block("inputs", [_value(value) for value in row["inputs"]])
    lines += _block("outputs", [_value(value) for value in row["outputs"]])
    lines += _block("axes", [f"{name} in {low}..{'' if high is None else high}" for name, (low, high) in _bounds(row)])
    lines += _block("holds where", row["guards"])
    lines += _block("assumes", row["assumptions"])
    lines += _block("fusions", [_fusion(fusion) for fusion in row["fusions"]])
    lines += _block(f"{row['nodes']} nodes", [f"{count:6} {op}" for op, count in row["operators"].items()])
    weights = row["weights"]
    lines += _block(
        f"{weights['count']} weights, {size_text(weights['bytes'])}",
        [f"{size_text(w['bytes']):>9} {w['name']} {w['dtype']}{w['shape']}" for w in weights["largest"]],
    )
    if weights["count"] > _TOP:
        lines.append(f"  and {weights['count'] - _TOP} more")
    files = [f"{f['file']}: {size_text(f['bytes'])}, {f['state']}" for f in weights["files"]]
    lines += _block("weights are in", files)
    if row["source"]:
        lines.append(f"made of {row['source']}")
    return "\n".join(lines)


def _plain(value: Any) -> Any:
    """The facts with names that a terminal can show."""
    if isinstance(value, str):
        return one_line(value)
    if isinstance(value, dict):
        return {_plain(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _fusion(row: dict[str, Any]) -> str:
    why = f", but not here: {row['why_not']}" if row["why_not"] else ""
    return f"{row['places']:6} {row['fusion']}{why}"


def _bounds(row: dict[str, Any]) -> list[tuple[str, list[int | None]]]:
    return sorted(row["ranges"].items())


def _block(title: str, rows: list[str]) -> list[str]:
    return [title, *(f"  {row}" for row in rows)] if rows else []


def _value(value: dict[str, Any]) -> str:
    shape = "" if value["shape"] is None else f"[{', '.join(value['shape'])}]"
    return f"{value['name']}: {value['dtype']}{shape}"


def size_text(size: float) -> str:
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} GB"


def linked_text(artifacts: Iterable[Artifact]) -> str:
    """Where the weights of linked models are: in the checkpoint's files, or, where these do not have them or in another
    form (as another type, or divided otherwise), in the model's own."""
    own = total = 0
    for artifact in artifacts:
        of_files = {row["file"]: row["bytes"] for row in artifact.weight_files()}
        linked = sum(size for file, size in of_files.items() if artifact.fingerprint_at_export(file))
        whole = sum(weight["bytes"] for weight in artifact.summary["weights"])
        own, total = own + whole - linked, total + whole
    if own == total:
        return "; the checkpoint has the weights in another form: they are copied"
    more = f", but for {size_text(own)}" if own > _SMALL else ""
    return f"; the weights stay in the files of the checkpoint{more}"


def processor_lines(artifacts: Iterable[Artifact]) -> list[str]:
    """Which processor the files are laid out for, where they are for one."""
    rows = [row for artifact in artifacts for row in json.loads(artifact.note("fusions") or "[]")]
    made = {row["fusion"] for row in rows if not row["why_not"]}
    found = {name.removeprefix(_SINGLE_TOKENS) for name in made if name.startswith(_SINGLE_TOKENS)}
    return [f"laid out for {name} processors (--processor); others run it too" for name in found]


def limit_lines(artifacts: Iterable[Artifact]) -> list[str]:
    """What the files are valid for, in words, one line each."""
    rows = [(artifact.path.name, words) for artifact in artifacts if artifact.limits for words in artifact.limits.words]
    several = len({name for name, _ in rows}) > 1
    return [f"limit: {f'{name}: ' if several else ''}{words}" for name, words in rows]
