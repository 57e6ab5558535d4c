"""Where quick imports are safe: releases of torch and transformers with which every file was compared."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version

# tests/quick_imports compares what is exported with and without; add a release after it passed with it.
TESTED: Mapping[str, tuple[str, ...]] = {"torch": ("2.13",), "transformers": ("5.22",)}


def untested_packages() -> list[str]:
    """The installed packages, with their versions, that quick imports were not tried with."""
    return [f"{name} {found}" for name in TESTED if not _is_tested(name, found := _installed(name))]


def _is_tested(name: str, found: str) -> bool:
    return ".".join(found.split(".")[:2]) in TESTED[name]


def _installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:  # a build that was never installed
        return "unknown"
