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
BUILDS = {
    "extension, as make demo builds it": [*TORCH, "-DBUILD_TESTING=OFF"],
    "extension and tests with torch": [*TORCH, "-DBUILD_TESTING=ON"],
    "C++ under sanitizers": SANITIZERS,
}
# make demo built the tests as well before it stopped to.
BASE_BUILDS = {**BUILDS, "extension, as make demo builds it": BUILDS["extension and tests with torch"]}
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


def unpack(commit: str, folder: Path) -> Path:
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, check=True, stdout=subprocess.PIPE)
    folder.mkdir()
    subprocess.run(["tar", "-x"], cwd=folder, input=archive.stdout, check=True)
    return folder


def show(seconds: float, name: str, base: float | None = None) -> float:
    print(f"{seconds:8.0f} {'' if base is None else format(base, '.0f'):>8}  {name}", flush=True)
    return seconds


def test_seconds(builds: dict[str, Path]) -> float:
    """The tests, each by the command of `make test`."""
    total = 0.0
    for name, folder in builds.items():
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


def main(base: str, with_tests: bool) -> int:
    with tempfile.TemporaryDirectory() as scratch:
        tree = unpack(base, Path(scratch) / "base")
        print(f"processor seconds: here, {base}")
        here: dict[str, float] = {}
        there = 0.0
        folders = {name: Path(scratch) / f"here-{number}" for number, name in enumerate(BUILDS)}
        for number, (name, options) in enumerate(BUILDS.items()):
            here[name] = build(ROOT, options, folders[name])
            then = build(tree, BASE_BUILDS[name], Path(scratch) / f"there-{number}")
            there += then
            show(here[name], name, then)
        demo = show(processor_seconds([sys.executable, "examples/demo.py"], ROOT), "the demo itself")
        extension, with_torch, sanitized = BUILDS
        tested = {name: folders[name] for name in (with_torch, sanitized)}
        tests = test_seconds(tested) if with_tests else 0.0
    to_demo = (here[extension] + demo) / CORES / 60
    to_test = (here[with_torch] + here[sanitized] + tests) / CORES / 60
    goals = [
        met(f"builds take fewer processor seconds than at {base}, times", there / sum(here.values()), TIMES_LESS, True),
        met(f"make demo on {CORES} cores, minutes without downloads", to_demo, DEMO_MINUTES - DEMO_DOWNLOADS),
    ]
    if with_tests:
        goals.append(
            met(f"make test on {CORES} cores, minutes without downloads", to_test, TEST_MINUTES - TEST_DOWNLOADS)
        )
    return 0 if all(goals) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], "--without-tests" not in sys.argv[2:]))
