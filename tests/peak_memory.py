"""Memory that a piece of code takes at its peak, whatever this process, or the one that started it, took before."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


class Peak:
    """`grown` is known when the block has ended: bytes beyond those that were held before it."""

    grown: int


@contextmanager
def peak_memory() -> Iterator[Peak]:
    with suppress(OSError):  # where a kernel does not let us, an earlier peak hides a lower one
        Path("/proc/self/clear_refs").write_text("5")  # the highest so far is what is held now
    peak, held = Peak(), _highest()
    yield peak
    peak.grown = _highest() - held


def _highest() -> int:
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) * 1024
