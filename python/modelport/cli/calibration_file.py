"""The file that ranges and inputs of products are measured on: text, or inputs by name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..base.errors import problem
from ..models.context_length import context_length

_ROWS = 8  # of a call
_TOKENS, _MOST_ROWS = 256, 64  # of a text that a model goes on with, cut into rows without padding
_WAY = "a text file, a line a row, beside a checkpoint with its tokenizer"


def read_texts(name: str, folder: Path, config: Any, reads: str) -> list[dict[str, Any]]:
    """Inputs of a model that generates. `reads` is the name of what it reads first."""
    from ..inputs.given import read_inputs

    path = Path(name)
    if path.suffix != ".txt":
        found = read_inputs(path)
        rows = {len(value) for value in found.values() if getattr(value, "shape", ())}
        return _some_rows_each(found) if len(rows) == 1 else [found]
    if reads != "input_ids":
        what = f"{path} is text, and the model reads {reads}"
        raise problem("E0318", what, f"inputs by name: a .npz or .safetensors file with {reads}")
    return _some_rows_each({"input_ids": _rows_of_text(path, folder, config)})


def _rows_of_text(path: Path, folder: Path, config: Any) -> Any:
    tokenizer, text = _opened(path, folder)
    ids = tokenizer(text, return_tensors="pt").input_ids[0]
    longest = context_length(config) or _TOKENS
    length = min(longest, _TOKENS, len(ids))
    if not length:
        raise problem("E0318", f"{path} has no text", _WAY)
    rows = ids[: len(ids) // length * length].reshape(-1, length)
    return rows[:: -(-len(rows) // _MOST_ROWS)]  # of a long text rows from all over it


def _some_rows_each(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What has no rows is given with all of them."""
    whole = {key: value for key, value in found.items() if not getattr(value, "shape", ())}
    cut = {key: value for key, value in found.items() if key not in whole}
    count = len(next(iter(cut.values())))
    return [whole | {key: value[i : i + _ROWS] for key, value in cut.items()} for i in range(0, count, _ROWS)]


def read_samples(name: str, folder: Path, example: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Inputs of the model, a few rows at a time. `folder` has the tokenizer; `example` is what the model takes."""
    from ..inputs.given import read_inputs

    path = Path(name)
    found = _of_text(path, folder) if path.suffix == ".txt" else read_inputs(path)
    if lost := [key for key in example if key not in found and hasattr(example[key], "shape")]:
        what = f"{path} has no {', '.join(lost)}, which the model takes"
        raise problem("E0318", what, f"it takes: {', '.join(example)}")
    return _some_rows_each({key: value for key, value in found.items() if key in example})


def _opened(path: Path, folder: Path) -> tuple[Any, str]:
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(folder), path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise problem("E0318", f"{path}: {error}", _WAY) from error


def _of_text(path: Path, folder: Path) -> dict[str, Any]:
    tokenizer, text = _opened(path, folder)
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        raise problem("E0318", f"{path} has no line", _WAY)
    return dict(tokenizer(lines, return_tensors="pt", padding=tokenizer.pad_token is not None, truncation=True))
