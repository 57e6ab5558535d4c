#!/usr/bin/env python3
"""Prints what pip has to install before the package can be built and tested, one requirement a line."""

from __future__ import annotations

import tomllib
from pathlib import Path


def requirements(pyproject: Path) -> list[str]:
    data = tomllib.loads(pyproject.read_text())
    project = data["project"]
    extras = project["optional-dependencies"].values()
    return [*data["build-system"]["requires"], *project["dependencies"], *(one for extra in extras for one in extra)]


if __name__ == "__main__":
    print("\n".join(requirements(Path(__file__).resolve().parent.parent / "pyproject.toml")))
