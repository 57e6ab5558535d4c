#!/usr/bin/env python3
"""Installs packages as `pip install` does, but by uv where it is there: it unpacks on all cores, and compiles nothing
that is not imported, an eighth of pip's work for gigabytes of packages.

usage: tools/install_packages.py <what pip install takes>

uv reads no settings of pip's, so they are handed to it. Where there is one that it has no word for, or where it fails,
pip itself installs."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

# In which order pip heeds the places that a setting may stand in.
PLACES = (":env:", "install", "global")
OPTIONS = {
    "index-url": "--default-index",
    "extra-index-url": "--index",
    "find-links": "--find-links",
    "trusted-host": "--allow-insecure-host",
}
VARIABLES = {"cert": "SSL_CERT_FILE", "timeout": "UV_HTTP_TIMEOUT", "default-timeout": "UV_HTTP_TIMEOUT"}
# How pip speaks, and where it keeps what it fetched.
NO_MATTER = ("disable-pip-version-check", "root-user-action", "progress-bar", "no-color", "cache-dir", "no-cache-dir")


def settings_of(listing: str) -> dict[str, str]:
    """What `pip config list` says: each name with the value that counts."""
    found: dict[str, dict[str, str]] = {place: {} for place in PLACES}
    for line in listing.splitlines():
        name, _, value = line.partition("=")
        place, _, key = name.partition(".")
        if place in found:
            found[place][key] = ast.literal_eval(value)
    return {key: value for place in reversed(PLACES) for key, value in found[place].items()}


def for_uv(settings: Mapping[str, str]) -> tuple[list[str], dict[str, str]] | None:
    """Arguments and variables that say the same to uv; None where it has no word for one of them."""
    # pip takes the best version of all indexes; uv would take the first index that has the package.
    arguments = ["--index-strategy", "unsafe-best-match"]
    variables = {}
    for key, value in settings.items():
        if key in OPTIONS:
            arguments += [part for one in value.split() for part in (OPTIONS[key], one)]
        elif key in VARIABLES:
            variables[VARIABLES[key]] = value
        elif key not in NO_MATTER:
            return None
    return arguments, variables


def install_by_uv(packages: list[str]) -> bool:
    uv = shutil.which("uv", path=Path(sys.executable).parent)
    if uv is None:
        return False
    listing = subprocess.check_output([sys.executable, "-m", "pip", "config", "list"], text=True)
    said = for_uv(settings_of(listing))
    if said is None:
        return False
    arguments, variables = said
    command = [uv, "pip", "install", "--python", sys.executable, *arguments, *packages]
    if subprocess.run(command, env=variables | os.environ).returncode == 0:
        return True
    print("uv could not install them; pip tries", file=sys.stderr)
    return False


if __name__ == "__main__":
    wanted = sys.argv[1:]
    if not install_by_uv(wanted):
        sys.exit(subprocess.run([sys.executable, "-m", "pip", "install", "--no-compile", *wanted]).returncode)
