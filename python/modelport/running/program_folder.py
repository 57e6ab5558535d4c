"""The folder of an ExecuTorch program: which of its methods does what follows from their names."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ..artifacts.artifact import EMBEDDING, ENCODER
from ..artifacts.pte import ProgramFile, find_program, read_program
from .folder import Folder, read_config

# As ExecuTorch's runners and optimum-executorch call them.
_ROLES = {
    "forward": "model",
    "text_decoder": "decoder_model_merged",
    "encoder": ENCODER,
    "token_embedding": EMBEDDING,
    "vision_encoder": "vision_encoder",
    "audio_encoder": "audio_encoder",
}
CALLED_ONCE = "it is a program that is called once"


def open_program(path: Path, config_in: Path | None = None) -> Folder:
    """`config_in` is the folder of the model's settings, where the program lies elsewhere."""
    if not path.is_file():
        ProgramFile(path)  # says so
    methods = read_program(path)["methods"]
    roles = {_ROLES[name]: name for name in methods if name in _ROLES}
    home = config_in or path.parent
    return Folder(home, dict.fromkeys(roles, path), read_config(home), roles)


def find_generating_program(path: str | os.PathLike[str]) -> Path | None:
    """The program that a path stands for, if it is one that generates."""
    program = find_program(path)
    return program if program is not None and program.is_file() and generates(open_program(program)) else None


def generates(folder: Folder) -> bool:
    """Whether a program says how it is to be called for the next token."""
    return "use_kv_cache" in _constants(folder)


def room_in(folder: Folder) -> int | None:
    """How many tokens the cache of a program holds; None where it is no program, or does not say."""
    if not folder.methods:
        return None
    told = _constants(folder)
    sizes = [told[name][0] for name in ("get_max_context_len", "get_max_seq_len") if told.get(name)]
    return next((size for size in sizes if isinstance(size, int)), None)


def _constants(folder: Folder) -> dict[str, Any]:
    return read_program(next(iter(folder.files.values())))["constant_methods"]
