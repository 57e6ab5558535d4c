#!/usr/bin/env python3
"""clang-tidy over the lines of C++ that differ from another commit: the whole tree takes minutes, a change seconds.

usage: tools/tidy_changed.py [COMMIT]    by default where this branch left main, on main the commit before
Looks at the torch-free rooms; at a header through the file of its name. `make tidy` looks at everything."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "tidy"
MOST = 40  # files; a change of more is for `make tidy`
Lines = dict[str, list[list[int]]]  # first and last of each stretch, by file


def git(*args: str) -> str:
    return subprocess.run(["git", *args], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def base_commit() -> str:
    """Nothing where there is no history: an archive, or a clone of one commit."""
    for other in ("origin/main", "main"):
        try:
            left = git("merge-base", "HEAD", other).strip()
        except (subprocess.CalledProcessError, FileNotFoundError):
            continue
        if left != git("rev-parse", "HEAD").strip():
            return left
    try:
        return git("rev-parse", "HEAD~1").strip()
    except (subprocess.CalledProcessError, FileNotFoundError):
        return ""


def changed_lines(diff: str) -> Lines:
    """Of a diff without context, the lines that are there now."""
    lines: Lines = {}
    stretches: list[list[int]] = []
    for line in diff.splitlines():
        if line.startswith("+++ "):
            stretches = lines.setdefault(line.removeprefix("+++ b/"), [])
        elif match := re.match(r"@@ \S+ \+(\d+)(?:,(\d+))? @@", line):
            first, count = int(match[1]), int(match[2] or 1)
            if count:
                stretches.append([first, first + count - 1])
    return {name: found for name, found in lines.items() if found}


def files_to_look_at(lines: Lines) -> list[Path]:
    compiled = {Path(row["file"]) for row in json.loads((BUILD / "compile_commands.json").read_text())}
    return sorted({(ROOT / name).with_suffix(".cc") for name in lines} & compiled)


def problems_of(file: Path, lines: Lines) -> str:
    only = json.dumps([{"name": name, "lines": stretches} for name, stretches in lines.items()])
    command = ["clang-tidy", "-p", str(BUILD), "--quiet", f"--line-filter={only}", str(file)]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stdout + (done.stderr if done.returncode and not done.stdout else "") if done.returncode else ""


def main(base: str) -> int:
    if not base:
        print("no commit to compare with: nothing is looked at")
        return 0
    lines = changed_lines(git("diff", "-U0", "--diff-filter=d", base, "--", "src/*.cc", "src/*.h"))
    if not lines:
        print("clang-tidy: no C++ differs")
        return 0
    subprocess.run(["cmake", "--preset", "tidy"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    generated = ["cmake", "--build", str(BUILD), "--target", "modelport_executorch_schema_headers"]
    subprocess.run(generated, check=True, stdout=subprocess.DEVNULL)
    files = files_to_look_at(lines)
    if len(files) > MOST:
        print(f"clang-tidy: {len(files)} files differ from {base[:9]}, more than {MOST}: make tidy looks at all")
        return 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = [text for text in pool.map(lambda file: problems_of(file, lines), files) if text]
    print(*found, sep="\n", end="")
    print(f"clang-tidy: {len(files)} files, {len(found)} with problems")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else base_commit()))
