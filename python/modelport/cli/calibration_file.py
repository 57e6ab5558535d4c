"""The file that ranges are measured on: text, or inputs by name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..base.errors import problem

_ROWS = 8  # of a call


def read_samples(name: str, folder: Path, example: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Inputs of the model, a few rows at a time. `folder` has the tokenizer; `example` is what the model takes."""
    from ..inputs.given import read_inputs

    path = Path(name)
    found = _of_text(path, folder) if path.suffix == ".txt" else read_inputs(path)
    if lost := [key for key in example if key not in found and hasattr(example[key], "shape")]:
        what = f"{path} has no {', '.join(lost)}, which the model takes"
        raise problem("E0318", what, f"it takes: {', '.join(example)}")
    own = {key: value for key, value in found.items() if key in example}
    rows = len(next(iter(own.values())))
    return [{key: value[i : i + _ROWS] for key, value in own.items()} for i in range(0, rows, _ROWS)]


def _of_text(path: Path, folder: Path) -> dict[str, Any]:
    from transformers import AutoTokenizer

    way = "a text file, a line a row, beside a checkpoint with its tokenizer"
    try:
        lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        tokenizer = AutoTokenizer.from_pretrained(folder)
    except (OSError, ValueError) as error:
        raise problem("E0318", f"{path}: {error}", way) from error
    if not lines:
        raise problem("E0318", f"{path} has no line", way)
    return dict(tokenizer(lines, return_tensors="pt", padding=tokenizer.pad_token is not None, truncation=True))
