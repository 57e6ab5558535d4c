"""Fleets that run in this process, and what was done by them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from modelport.fleet.jobs import Job
from modelport.fleet.local_place import LocalPlace
from modelport.fleet.performing import Settings
from modelport.fleet.scheduling import Schedule


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
