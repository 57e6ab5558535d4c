"""Headers of safetensors files, kept for the next time, and folders of the moment: in the assets of the hub's cache."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def headers_of(repository: str, commit: str) -> Path:
    return _assets(f"{repository.replace('/', '--')}@{commit}")


def open_folders() -> Path:
    """Where folders lie while they are used; those of processes that are gone are removed."""
    home = _assets("open")
    for entry in home.iterdir():
        process = entry.name.partition("-")[0]
        if process.isdecimal() and not _lives(int(process)):
            shutil.rmtree(entry, ignore_errors=True)
    return home


def _assets(subfolder: str) -> Path:
    from huggingface_hub import cached_assets_path, constants

    place = {"library_name": "modelport", "namespace": "headers", "subfolder": subfolder}
    return cached_assets_path(**place, assets_dir=constants.HF_ASSETS_CACHE)


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it is another user's
        return True
    return True
