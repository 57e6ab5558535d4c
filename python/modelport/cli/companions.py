"""Files that go with a model: those that the checkpoint has, and those that a client wants."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from .console import Console

# What runtimes and tokenizers look for beside a model.
_COMPANIONS = (
    "config.json", "generation_config.json", "preprocessor_config.json", "processor_config.json",
    "image_processor_config.json", "video_preprocessor_config.json", "feature_extractor_config.json",
    "tokenizer*", "special_tokens_map.json", "added_tokens.json", "vocab.*", "merges.txt", "*.spm", "*.model",
    "*.tiktoken", "chat_template*", "spiece.*", "sentencepiece.*",
)  # fmt: skip


def copy_companions(source: Path, target: Path) -> None:
    """Of an adapter: its own, and what it lacks from the model that it changes."""
    from ..weights.adapter import base_of

    for folder in dict.fromkeys((source, base_of(source))):
        for pattern in _COMPANIONS:
            for file in sorted(folder.glob(pattern)):
                if file.is_file() and not (target / file.name).exists():
                    shutil.copyfile(file, target / file.name)


def write_contract(client: str, console: Console, folder: Path, config: Any, generation_config: Any = None) -> None:
    """Makes of the folder what the client opens."""
    from ..contracts import write_contract

    for note in write_contract(client, folder, config, generation_config):
        console.note(note)
