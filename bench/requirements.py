"""What the benchmarks share: requirements that are checked, and times as people read them."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Requirements:
    missed: list[str] = field(default_factory=list)

    def check(self, name: str, holds: bool, found: str) -> None:
        print(f"  {'ok    ' if holds else 'MISSED'}  {name}: {found}", flush=True)
        if not holds:
            self.missed.append(f"{name}: {found}")

    def verdict(self) -> int:
        if self.missed:
            print(f"\n{len(self.missed)} missed:")
            print("\n".join(f"  {line}" for line in self.missed))
            return 1
        print("\nEvery requirement that was measured is met.")
        return 0


def seconds(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def median(call: Callable[[], Any], runs: int = 5) -> float:
    """Of some runs, after one that nobody counts."""
    call()
    return statistics.median(seconds(call) for _ in range(runs))


def shown(time_s: float) -> str:
    return f"{1000 * time_s:,.1f} ms" if time_s < 10 else f"{time_s:,.1f} s"


def peak_mib() -> float:
    """Of this program alone: getrusage remembers the process that started it."""
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 1024


class Stolen:
    """What the host of a virtual machine gave to others, from here on: with much of it a time says little."""

    def __init__(self) -> None:
        self._before = self._ticks()

    @staticmethod
    def _ticks() -> list[int]:
        found = Path("/proc/stat").read_text().splitlines()[0].split()[1:9]
        return [int(ticks) for ticks in found]

    def __str__(self) -> str:
        """For the end of a line; empty where it is next to nothing."""
        spent = [now - then for now, then in zip(self._ticks(), self._before, strict=True)]
        _, _, _, idle, waiting, _, _, stolen = spent
        share = stolen / max(sum(spent) - idle - waiting, 1)  # of what was asked for
        return f"; the host took {share:.0%} of the processors" if share >= 0.01 else ""
