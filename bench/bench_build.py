#!/usr/bin/env python3
"""How long builds, `make demo` and `make test` take, each from nothing and without ccache.

Builds are compared with those of another commit by seconds of processor, which depend less on what else runs here than
minutes do. `make demo` and `make test` are run in a clone of their own, downloads and all, and take the minutes that a
newcomer waits. Fails when a goal is missed.
usage: bench/bench_build.py <commit> [--only builds|demo|test]"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from requirements import Requirements, seconds

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
PARTS = ("builds", "demo", "test")
TIMES_LESS = 2.0  # processor seconds of builds than at the other commit
MINUTES = {"demo": 4.0, "test": 20.0}  # at most, on two cores that do nothing else
# Of a newcomer: nothing is compiled already, and no `make` around this one says how.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")} | {
    "CCACHE_DISABLE": "1"
}


def processor_seconds(command: list[str], folder: Path) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=folder, env=ENVIRONMENT, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def build(tree: Path, options: list[str], folder: Path) -> float:
    configuring = processor_seconds(["cmake", "-S", str(tree), "-B", str(folder), *options], tree)
    return configuring + processor_seconds(["cmake", "--build", str(folder)], tree)


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


def compare_builds(base: str, scratch: Path, requirements: Requirements) -> None:
    here = builds_here(scratch)
    there = builds_there(unpack(base, scratch / "base"), scratch)
    print(f"processor seconds: here, {base}")
    for name, taken in here.items():
        print(f"{taken:8.0f} {there[name]:8.0f}  {name}")
    times_less = sum(there.values()) / sum(here.values())
    what = f"builds take {TIMES_LESS:.0f} times fewer processor seconds than at {base}"
    requirements.check(what, times_less >= TIMES_LESS, f"{times_less:.1f} times")


def time_target(target: str, scratch: Path, requirements: Requirements) -> None:
    """From the clone to the last line."""
    clone = scratch / target

    def build_and_run() -> None:
        subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], check=True)
        subprocess.run(["make", "-s", target], cwd=clone, env=ENVIRONMENT, check=True, stdout=subprocess.DEVNULL)

    minutes = seconds(build_and_run) / 60
    what = f"make {target} from a clone in {MINUTES[target]:.0f} minutes"
    requirements.check(what, minutes <= MINUTES[target], f"{minutes:.1f}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("base", metavar="commit", help="whose builds are compared with ours")
    parser.add_argument("--only", choices=PARTS, help="one part")
    options = parser.parse_args()
    requirements = Requirements()
    with tempfile.TemporaryDirectory() as folder:
        for part in PARTS if options.only is None else [options.only]:
            if part == "builds":
                compare_builds(options.base, Path(folder), requirements)
            else:
                time_target(part, Path(folder), requirements)
    return requirements.verdict()


if __name__ == "__main__":
    sys.exit(main())
