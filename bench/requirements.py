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
