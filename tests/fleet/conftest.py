"""Checkpoints that have nothing in them, and a fleet of workers that need nothing of them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from modelport.fleet.jobs import Job
from modelport.fleet.local_place import LocalPlace
from modelport.fleet.performing import Settings
from modelport.fleet.scheduling import Schedule

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


def run_here(jobs: list[Job], settings: Settings, slots: int = 2, memory: int = 1 << 40) -> dict[str, dict[str, Any]]:
    """The rows by the names of the jobs."""
    rows: dict[str, dict[str, Any]] = {}
    schedule = Schedule(jobs, lambda row: rows.setdefault(row["name"], row))
    place = LocalPlace(slots, memory, settings)
    try:
        schedule.add(place)
        schedule.wait(tuple)
    finally:
        place.close()
    return rows


def times_done(tmp_path: Path) -> int:
    log = tmp_path / "models/done.txt"
    return len(log.read_text().splitlines()) if log.exists() else 0
