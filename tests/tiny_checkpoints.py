"""Checkpoint folders of tiny models, for tests that start from a folder."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import torch
from tiny_models import tiny
from transformers import BertConfig

KINDS = {"bert": "bert for masked words", "llama": "llama", "vit": "vit"}
MAKERS = {name: functools.partial(tiny, kind) for name, kind in KINDS.items()}


def save(name: str, folder: Path) -> Path:
    MAKERS[name]().save_pretrained(folder / name)
    (folder / name / "tokenizer_config.json").write_text("{}")
    return folder / name


def save_own_code(name: str, code: str, folder: Path) -> None:
    """A checkpoint whose class is Python code that lies in it, and is made of a configuration of BERT's."""
    (folder / "mine.py").write_text(code)
    scope: dict[str, Any] = {"__name__": "mine"}
    exec(compile(code, str(folder / "mine.py"), "exec"), scope)
    torch.manual_seed(0)
    scope[name](BertConfig(vocab_size=40, max_position_embeddings=24)).save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text())
    config |= {"architectures": [name], "auto_map": {"AutoModel": f"mine.{name}"}}
    (folder / "config.json").write_text(json.dumps(config))
