#!/usr/bin/env python3
"""Writes constraints.txt and tests/clients/package-lock.json: the versions that `make setup` and `make test` take.

Python: what is installed in `.venv` of all that pyproject.toml asks for, by version alone. A package whose wheel is not
there for each of our architectures gets a marker; torch is left out, `make TORCH=...` names it. npm: what package.json
comes to, for every system, without addresses of registries."""

from __future__ import annotations

import argparse
import json
import platform
import re
import subprocess
import sys
import tempfile
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from list_requirements import requirements
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent
CONSTRAINTS = ROOT / "constraints.txt"
CLIENTS = ROOT / "tests" / "clients"
MACHINES = ("aarch64", "x86_64")
# torch and what comes with one build of it alone; what pip and venv bring themselves.
LEFT_OUT = re.compile(r"torch|triton|nvidia-.*|cuda-.*|pip|setuptools|wheel|modelport")
HEAD = "# Written by make lock: what make setup installs. torch is not here: the Makefile names it.\n"


def closure(roots: list[str]) -> dict[str, str]:
    """What these requirements come to here: names and versions of all that is installed for them."""
    found: dict[str, str] = {}
    waiting = [Requirement(one) for one in roots]
    while waiting:
        asked = waiting.pop()
        name = canonicalize_name(asked.name)
        try:
            there = distribution(asked.name)
        except PackageNotFoundError:
            continue  # asked for by an extra that nobody installs
        if name in found and not asked.extras:
            continue
        found[name] = Version(there.version).public
        for further in map(Requirement, there.requires or ()):
            extras = ("", *asked.extras)
            if further.marker is None or any(further.marker.evaluate({"extra": extra}) for extra in extras):
                waiting.append(Requirement(str(further).split(";")[0]))
    return {name: version for name, version in sorted(found.items()) if not LEFT_OUT.fullmatch(name)}


def is_pure(name: str) -> bool:
    """Whether its wheel is the same for every machine."""
    tags = distribution(name).read_text("WHEEL") or ""
    return "Tag: py3-none-any" in tags or "Tag: py2.py3-none-any" in tags or "-none-any" in tags


def exists_for(name: str, version: str, machine: str) -> bool:
    """Whether pip finds a wheel for that machine. Nothing is installed."""
    libc = ("manylinux_2_17", "manylinux2014", "manylinux_2_27", "manylinux_2_28", "manylinux_2_31", "manylinux_2_34")
    platforms = [f"--platform={one}_{machine}" for one in (*libc, "manylinux1")]
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "install", "-q", "--dry-run", "--no-deps", "--only-binary=:all:"]
        command += ["--target", folder, *platforms, f"{name}=={version}"]
        return subprocess.run(command, capture_output=True).returncode == 0


def constraint(name: str, version: str) -> str:
    others = [machine for machine in MACHINES if machine != platform.machine()]
    if is_pure(name) or all(exists_for(name, version, machine) for machine in others):
        return f"{name}=={version}"
    print(f"{name} {version} was found for {platform.machine()} alone")
    return f'{name}=={version}; platform_machine == "{platform.machine()}"'


def lock_python() -> None:
    pyproject = ROOT / "pyproject.toml"
    roots = [*requirements(pyproject), "numpy"]
    found = closure(roots)
    executorch = Requirement(requirements(pyproject, "executorch")[0])  # installed without what it asks for
    found[executorch.name] = str(executorch.specifier).removeprefix("==")
    lines = [constraint(name, version) for name, version in sorted(found.items())]
    CONSTRAINTS.write_text(HEAD + "\n".join(lines) + "\n")


def lock_npm() -> None:
    """In an empty folder: beside installed packages, npm forgets those of other systems."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "package.json").write_text((CLIENTS / "package.json").read_text())
        command = [
            "npm",
            "install",
            "--package-lock-only",
            "--omit-lockfile-registry-resolved",
            "--no-audit",
            "--no-fund",
        ]
        subprocess.run([*command, "--ignore-scripts", "--silent"], cwd=folder, check=True)
        lock = json.loads((Path(folder) / "package-lock.json").read_text())
    for package in lock["packages"].values():
        package.pop("resolved", None)
    (CLIENTS / "package-lock.json").write_text(json.dumps(lock, indent=2) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=["python", "npm"], help="one of the two")
    given = parser.parse_args()
    if given.what in (None, "python"):
        lock_python()
    if given.what in (None, "npm"):
        lock_npm()
