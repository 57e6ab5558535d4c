#!/usr/bin/env python3
"""Processor seconds of the builds behind `make demo` and `make test`, next to those of another commit.

Both trees are built from nothing on this machine, without ccache. Seconds of processor, unlike minutes, do not depend
on what else runs here. Fails when the builds are not as much faster as we say.
usage: bench/bench_build.py <commit>"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SANITIZERS = ["--preset", "dev"]
TORCH = [
    *("-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DMODELPORT_WITH_TORCH=ON", "-DMODELPORT_TORCH_TESTS_ONLY=ON"),
    f"-DPython_EXECUTABLE={sys.executable}",
]
BUILDS = {
    "extension, as make demo builds it": [*TORCH, "-DBUILD_TESTING=OFF"],
    "extension and tests with torch": [*TORCH, "-DBUILD_TESTING=ON"],
    "C++ under sanitizers": SANITIZERS,
}
# make demo built the tests as well before it stopped to.
BASE_BUILDS = {**BUILDS, "extension, as make demo builds it": BUILDS["extension and tests with torch"]}
CLAIM = 2.0


def processor_seconds(command: list[str], folder: Path) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, "CCACHE_DISABLE": "1"}
    subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def build(tree: Path, options: list[str]) -> float:
    with tempfile.TemporaryDirectory() as folder:
        seconds = processor_seconds(["cmake", "-S", str(tree), "-B", folder, *options], tree)
        return seconds + processor_seconds(["cmake", "--build", folder], tree)


def unpack(commit: str, folder: Path) -> Path:
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, check=True, stdout=subprocess.PIPE)
    subprocess.run(["tar", "-x"], cwd=folder, input=archive.stdout, check=True)
    return folder


def main(base: str) -> int:
    with tempfile.TemporaryDirectory() as folder:
        tree = unpack(base, Path(folder))
        sums = [0.0, 0.0]
        print(f"processor seconds: here, {base}")
        for name, options in BUILDS.items():
            pair = build(ROOT, options), build(tree, BASE_BUILDS[name])
            sums = [total + one for total, one in zip(sums, pair, strict=True)]
            print(f"{pair[0]:8.0f} {pair[1]:8.0f}  {name}", flush=True)
    start = time.monotonic()
    processor = processor_seconds([sys.executable, "examples/demo.py"], ROOT)
    print(f"{processor:8.0f}           the demo itself, {time.monotonic() - start:.0f} s by the clock")
    ratio = sums[1] / sums[0]
    print(f"the builds take {ratio:.1f} times less than at {base}; we say {CLAIM}")
    return 0 if ratio >= CLAIM else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
