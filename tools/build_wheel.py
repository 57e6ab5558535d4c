#!/usr/bin/env python3
"""Builds a wheel for a release of torch, in an environment of its own, whatever torch `.venv` has.

usage: tools/build_wheel.py <torch> [--out dist]

The environment stays in build/versions, the objects in build/wheel-*: a second run compiles only what changed. pip's
settings (indexes, PIP_ARGS, PIP_CONSTRAINT) are those of the shell."""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
from pathlib import Path

from list_requirements import requirements

ROOT = Path(__file__).resolve().parent.parent
VERSIONS = ROOT / "build" / "versions"
BUILD_TOOLS = ("scikit-build-core", "cmake", "ninja")


def environment(torch: str) -> Path:
    """A Python with this torch and what a build needs; its folder is made once."""
    home = VERSIONS / f"torch-{torch}"
    python = home / "bin" / "python"
    if not (home / ".ready").exists():
        print(f"setting up an environment with torch {torch} (gigabytes where the wheel has CUDA)", flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
        install(python, f"torch=={torch}", "numpy")
        pyproject = ROOT / "pyproject.toml"
        install(python, *(one for one in requirements(pyproject, "run") if one.startswith(BUILD_TOOLS)))
        install(python, "--no-deps", *requirements(pyproject, "executorch"))
        (home / ".ready").touch()
    return python


def install(python: Path, *packages: str) -> None:
    """Constraints are those of the pinned torch, hence not for this one."""
    given = shlex.split(os.environ.get("PIP_ARGS", ""))
    subprocess.run([str(python), "-m", "pip", "install", "-q", *given, *packages], check=True)


def build(torch: str, out: Path) -> Path:
    """The wheel, whose version and requirements say which torch it is for."""
    python = environment(torch)
    out.mkdir(parents=True, exist_ok=True)
    command = [str(python), "-m", "pip", "wheel", "-v", "--no-build-isolation", "--no-deps", "-w", str(out)]
    command += [f"-Cbuild-dir=build/wheel-{torch}", "."]
    tools = os.environ | {"MODELPORT_LABEL": "1", "PATH": f"{python.parent}:{os.environ['PATH']}"}
    shown = [sys.executable, str(ROOT / "tools" / "show_build.py"), str(VERSIONS / f"torch-{torch}.log"), *command]
    subprocess.run(shown, cwd=ROOT, env=tools, check=True)
    minor = ".".join(torch.split(".")[:2])
    return max(out.glob(f"modelport-*+torch{minor}-*.whl"), key=lambda wheel: wheel.stat().st_mtime)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("torch", help="a release, such as 2.15.0")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="the folder that gets the wheel")
    given = parser.parse_args()
    wheel = build(given.torch.removeprefix("torch=="), given.out)
    print(f"{wheel}\ninstall it with: pip install {wheel}")


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)
