#!/usr/bin/env python3
"""Runs a build, shows the lines that say how far it is, and keeps the rest for when it fails.

usage: tools/show_build.py <log> <command...>"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PROGRESS = re.compile(r"^\s*(\[\d+/\d+\] .*|-- (?:Configuring|Generating) done.*)$")
SHOWN_ON_FAILURE = 200


def run(log: Path, command: list[str]) -> int:
    log.parent.mkdir(parents=True, exist_ok=True)
    lines: list[str] = []
    with (
        log.open("w") as file,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
        ) as build,
    ):
        assert build.stdout is not None
        for line in build.stdout:
            file.write(line)
            lines.append(line)
            if progress := PROGRESS.match(line):
                print(progress[1], flush=True)
    if build.returncode:
        print("".join(lines[-SHOWN_ON_FAILURE:]), end="")
        print(f"the build failed; all of its output is in {log}")
    return build.returncode


if __name__ == "__main__":
    sys.exit(run(Path(sys.argv[1]), sys.argv[2:]))
