"""Checkpoint folders of tiny models, for tests that start from a folder."""

from __future__ import annotations

import functools
from pathlib import Path

from tiny_models import tiny

KINDS = {"bert": "bert for masked words", "llama": "llama", "vit": "vit"}
MAKERS = {name: functools.partial(tiny, kind) for name, kind in KINDS.items()}


def save(name: str, folder: Path) -> Path:
    MAKERS[name]().save_pretrained(folder / name)
    (folder / name / "tokenizer_config.json").write_text("{}")
    return folder / name
