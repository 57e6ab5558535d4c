#!/usr/bin/env python3
"""Says where the minutes of a test run went, from lines `<second> > <step>`, which begins, and `<second> <step>`, which
is done. Steps run side by side, so that all of them together take less than their sum.

usage: tools/show_minutes.py <file>"""

from __future__ import annotations

import sys
from pathlib import Path


def durations(text: str) -> dict[str, int]:
    """Seconds from a step's beginning to its end, or from the line before where nothing says when it began; a step that
    runs more than once is summed."""
    steps: dict[str, int] = {}
    began: dict[str, int] = {}
    before = 0
    for second, step in ((int(second), step) for second, step in (line.split(" ", 1) for line in text.splitlines())):
        if step.startswith("> "):
            began[step.removeprefix("> ")] = second
        elif before:
            steps[step] = steps.get(step, 0) + second - began.pop(step, before)
        before = second
    return steps


def whole(text: str) -> int:
    seconds = [int(line.split(" ", 1)[0]) for line in text.splitlines()]
    return seconds[-1] - seconds[0]


def minutes(seconds: int) -> str:
    return f"{seconds // 60:3d}:{seconds % 60:02d}"


if __name__ == "__main__":
    text = Path(sys.argv[1]).read_text()
    for step, seconds in durations(text).items():
        print(f"{minutes(seconds)}  {step}")
    print(f"{minutes(whole(text))}  in all")
