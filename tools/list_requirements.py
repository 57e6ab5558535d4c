#!/usr/bin/env python3
"""Prints what pip has to install before the package can be built and tested, one requirement a line.

With the name of an extra, what that one adds; with `run`, what the build and the demo need; with `tools`, what compiles
C++ that does not see torch and what installs the rest."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

BUILD_TOOLS = ("cmake", "ninja", "uv")
APART = ("bench", "executorch")  # installed by steps of their own


def requirements(pyproject: Path, extra: str | None = None) -> list[str]:
    data = tomllib.loads(pyproject.read_text())
    project = data["project"]
    extras = project["optional-dependencies"]
    tools = [one for one in extras["dev"] if one.startswith(BUILD_TOOLS)]
    if extra == "tools":
        return tools
    if extra == "run":
        return [*data["build-system"]["requires"], *project["dependencies"], *extras["onnx"], *tools]
    if extra is not None:
        return extras[extra]
    needed = [one for name, packages in extras.items() if name not in APART for one in packages]
    return [*data["build-system"]["requires"], *project["dependencies"], *needed]


if __name__ == "__main__":
    path = Path(__file__).resolve().parent.parent / "pyproject.toml"
    print("\n".join(requirements(path, *sys.argv[1:2])))
