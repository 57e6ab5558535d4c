#!/usr/bin/env python3
"""Processor seconds of `make demo` and `make test`: builds, next to those of another commit, the demo, the tests.

Both trees are built from nothing on this machine, without ccache. Seconds of processor, unlike minutes, do not depend
on what else runs here; two cores need half as many, plus what is downloaded. Fails when a goal is missed.
usage: bench/bench_build.py <commit> [--without-tests]"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SANITIZERS = ["--preset", "dev"]
TORCH = [
    *("-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DMODELPORT_WITH_TORCH=ON", "-DMODELPORT_TORCH_TESTS_ONLY=ON"),
    f"-DPython_EXECUTABLE={sys.executable}",
]
EXTENSION, WITH_TORCH, SANITIZED = (
    "extension, as make demo builds it",
    "extension and tests with torch",
    "C++ under sanitizers",
)
CORES = 2
# Goals: how many times less the builds take, and minutes on two cores, of which downloads get a share.
TIMES_LESS = 2.0
DEMO_MINUTES, DEMO_DOWNLOADS = 4.0, 1.5
TEST_MINUTES, TEST_DOWNLOADS = 20.0, 2.5


def processor_seconds(command: list[str], folder: Path) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, "CCACHE_DISABLE": "1"}
    subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def build(tree: Path, options: list[str], folder: Path) -> float:
    seconds = processor_seconds(["cmake", "-S", str(tree), "-B", str(folder), *options], tree)
    return seconds + processor_seconds(["cmake", "--build", str(folder)], tree)


def builds_here(scratch: Path) -> dict[str, float]:
    """The tests with torch are built in the folder of the extension, as `make test` does."""
    extension = build(ROOT, [*TORCH, "-DBUILD_TESTING=OFF"], scratch / "here-torch")
    tests = build(ROOT, [*TORCH, "-DBUILD_TESTING=ON"], scratch / "here-torch")
    sanitized = build(ROOT, SANITIZERS, scratch / "here-sanitized")
    return {EXTENSION: extension, WITH_TORCH: extension + tests, SANITIZED: sanitized}


def builds_there(tree: Path, scratch: Path) -> dict[str, float]:
    """`make demo` built the tests as well before it stopped to."""
    with_torch = build(tree, [*TORCH, "-DBUILD_TESTING=ON"], scratch / "there-torch")
    sanitized = build(tree, SANITIZERS, scratch / "there-sanitized")
    return {EXTENSION: with_torch, WITH_TORCH: with_torch, SANITIZED: sanitized}


def unpack(commit: str, folder: Path) -> Path:
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, check=True, stdout=subprocess.PIPE)
    folder.mkdir()
    subprocess.run(["tar", "-x"], cwd=folder, input=archive.stdout, check=True)
    return folder


def show(seconds: float, name: str, base: float | None = None) -> float:
    print(f"{seconds:8.0f} {'' if base is None else format(base, '.0f'):>8}  {name}", flush=True)
    return seconds


def test_seconds(scratch: Path) -> float:
    """Checks and tests, each by the command of `make test`."""
    total = show(processor_seconds(["make", "-s", "check", "tidy-changed"], ROOT), "checks")
    for name, folder in ((WITH_TORCH, scratch / "here-torch"), (SANITIZED, scratch / "here-sanitized")):
        command = ["ctest", "--test-dir", str(folder), "--no-tests=error", "-j", str(CORES)]
        total += show(processor_seconds(command, ROOT), f"ctest: {name}")
    os.environ["OMP_NUM_THREADS"] = "1"
    command = [sys.executable, "-m", "pytest", "-q", "-n", str(CORES), "--dist", "worksteal"]
    return total + show(processor_seconds(command, ROOT), "pytest")


def met(goal: str, value: float, limit: float, least: bool = False) -> bool:
    is_met = value >= limit if least else value <= limit
    words = "at least" if least else "at most"
    print(f"{'met   ' if is_met else 'MISSED'} {goal}: {value:.1f}; {words} {limit:.1f} is the goal")
    return is_met


def within(command: str, minutes: float, limit: float, downloads: float) -> bool:
    words = f"{command} in {limit:.0f} minutes on {CORES} cores, {downloads} of them for downloads; minutes of the rest"
    return met(words, minutes, limit - downloads)


def main(base: str, with_tests: bool) -> int:
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        print(f"processor seconds: here, {base}")
        here = builds_here(scratch)
        there = builds_there(unpack(base, scratch / "base"), scratch)
        for name in here:
            show(here[name], name, there[name])
        demo = show(processor_seconds([sys.executable, "examples/demo.py"], ROOT), "the demo itself")
        tests = test_seconds(scratch) if with_tests else 0.0
    to_demo = (here[EXTENSION] + demo) / CORES / 60
    to_test = (here[WITH_TORCH] + here[SANITIZED] + tests) / CORES / 60
    times_less = sum(there.values()) / sum(here.values())
    goals = [
        met(f"builds take fewer processor seconds than at {base}, times", times_less, TIMES_LESS, True),
        within("make demo", to_demo, DEMO_MINUTES, DEMO_DOWNLOADS),
    ]
    if with_tests:
        goals.append(within("make test", to_test, TEST_MINUTES, TEST_DOWNLOADS))
    return 0 if all(goals) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], "--without-tests" not in sys.argv[2:]))
