"""The folder of an OpenVINO model: which file does what follows from its name, as in folders of optimum-intel."""

from __future__ import annotations

import os
from pathlib import Path

from ..artifacts.ir import EXPORT_AGAIN, LANGUAGE, NAMES, find_parts
from ..base.errors import problem
from .folder import Folder, read_config


def open_ir(path: str | os.PathLike[str]) -> Folder | None:
    """The parts that a path stands for; None where it is no OpenVINO model. What is not whole is refused."""
    parts = find_parts(path)
    if not parts:
        return None
    home = Path(path) if Path(path).is_dir() else Path(path).parent
    folder = Folder(home, parts, read_config(home))
    lacks = None
    if (folder.encoder or folder.embedding) and not folder.in_parts:
        lacks = LANGUAGE if folder.embedding else NAMES["decoder_model"]
    elif (folder.config or {}).get("is_encoder_decoder") and folder.in_parts and folder.encoder is None:
        lacks = NAMES["encoder_model"]
    if lacks is not None:
        have = ", ".join(sorted(file.name for file in parts.values()))
        raise problem("E0103", f"{path}: {lacks}.xml is missing beside {have}", EXPORT_AGAIN)
    return folder
