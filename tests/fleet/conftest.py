"""Checkpoints that have nothing in them, and settings for workers that need nothing of them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from modelport.fleet.performing import Settings

HERE = Path(__file__).parent


@pytest.fixture
def checkpoint(tmp_path: Path) -> Callable[..., str]:
    """Makes a folder with some bytes."""

    def make(name: str, content: str = "", size: int = 0) -> str:
        folder = tmp_path / "models" / name
        folder.mkdir(parents=True)
        (folder / "config.json").write_text(content or name)
        with (folder / "model.safetensors").open("wb") as file:
            file.truncate(size)
        return str(folder)

    return make


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")]))
    (tmp_path / "out").mkdir()
    return Settings(str(tmp_path / "out"), str(tmp_path / "cache"), timeout=20, module="light_worker")
