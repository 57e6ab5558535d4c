"""`modelport inspect` of a checkpoint, a folder or a name of the hub: what its settings and headers say."""

from __future__ import annotations

import math
import os
from collections import Counter
from pathlib import Path
from typing import Any

from ..base.checkpoint_headers import stored_tensors
from ..base.json_text import parse_json
from ..base.printable import listed, one_line
from ..hub.folder import origin_of
from .console import Console
from .inspect_artifact import size_text
from .model_folder import with_headers

_TOP = 10
_SETTINGS = ("hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size", "max_position_embeddings")


def run(args: Any, console: Console) -> bool:
    args.model = args.artifact
    with with_headers(args, console) as folder:
        row = facts(folder, args.model)
    console.result(text(row), row)
    return True


def facts(folder: Path, name: str) -> dict[str, Any]:
    """The checkpoint as JSON shows it."""
    path = folder / "config.json"
    config = parse_json(path.read_text(encoding="utf-8")) if path.is_file() else {}
    tensors = [
        {"name": name, "dtype": dtype, "shape": list(shape), "bytes": size, "file": os.path.basename(file)}
        for name, file, _, size, dtype, shape in stored_tensors(os.fspath(folder))
    ]
    sizes: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    for row in tensors:
        sizes[row["dtype"]] += row["bytes"]
        counts[row["dtype"]] += math.prod(row["shape"])
    origin = origin_of(folder)
    return {
        "model": name,
        "commit": None if origin is None else origin.revision,
        "class": (config.get("architectures") or [None])[0],
        "model_type": config.get("model_type"),
        "settings": {key: config[key] for key in _SETTINGS if key in config},
        "parameters": sum(counts.values()),
        "weights": {
            "count": len(tensors),
            "bytes": sum(sizes.values()),
            "files": sorted({row["file"] for row in tensors}),
            "types": {dtype: {"parameters": counts[dtype], "bytes": size} for dtype, size in sorted(sizes.items())},
            "largest": sorted(tensors, key=lambda row: (-row["bytes"], row["name"]))[:_TOP],
        },
    }


def text(row: dict[str, Any]) -> str:
    weights = row["weights"]
    at = f" at {row['commit']}" if row["commit"] else ""
    lines = [f"{one_line(row['model'])}{at}: a checkpoint of {one_line(str(row['class'] or row['model_type']))}"]
    lines += [f"  {key} {one_line(str(value))}" for key, value in row["settings"].items()]
    lines.append(f"{row['parameters']:,} parameters in {weights['count']} tensors, {size_text(weights['bytes'])}")
    for dtype, found in weights["types"].items():
        lines.append(f"  {dtype} {found['parameters']:,} parameters, {size_text(found['bytes'])}")
    for one in weights["largest"]:
        lines.append(f"  {size_text(one['bytes']):>9} {one_line(one['name'])} {one['dtype']}{one['shape']}")
    lines.append(f"weights are in {listed(map(one_line, weights['files']), 3)}")
    return "\n".join(lines)
