"""Memory that a piece of code takes at its peak, whatever this process, or the one that started it, took before."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class Peak:
    """`grown` is known when the block has ended: bytes beyond those that were held before it."""

    grown: int


@contextmanager
def peak_memory() -> Iterator[Peak]:
    Path("/proc/self/clear_refs").write_text("5")  # the highest so far is what is held now
    peak, held = Peak(), _bytes("VmRSS")
    yield peak
    peak.grown = _bytes("VmHWM") - held


def _bytes(field: str) -> int:
    return int(Path("/proc/self/status").read_text().split(f"{field}:")[1].split()[0]) * 1024
