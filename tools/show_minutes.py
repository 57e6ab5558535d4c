#!/usr/bin/env python3
"""Says where the minutes of a test run went, from lines `<second at which it was done> <step>`.

usage: tools/show_minutes.py <file>"""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path


def durations(text: str) -> dict[str, int]:
    """Seconds from one line to the next; a step that is named more than once is summed."""
    marks = [(int(second), step) for second, step in (line.split(" ", 1) for line in text.splitlines())]
    steps: dict[str, int] = {}
    for (before, _), (after, step) in pairwise(marks):
        steps[step] = steps.get(step, 0) + after - before
    return steps


def minutes(seconds: int) -> str:
    return f"{seconds // 60:3d}:{seconds % 60:02d}"


if __name__ == "__main__":
    steps = durations(Path(sys.argv[1]).read_text())
    for step, seconds in steps.items():
        print(f"{minutes(seconds)}  {step}")
    print(f"{minutes(sum(steps.values()))}  in all")
