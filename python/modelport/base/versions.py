"""Releases that this source was tried with, and what is installed here. Needs neither torch nor the extension."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

# Of one source: pyproject.toml says the same to pip, and `make test-versions` tries both ends.
OLDEST = {"torch": "2.11", "transformers": "5.13"}
NEWEST = {"torch": "2.15", "transformers": "5.22"}
# The wheel of ExecuTorch's runtime loads beside older ones, but takes their tensors for what they are not.
RUNTIME_TORCH = "2.13"


def installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def own_version() -> str:
    """Of this package, with the torch that a wheel is for: 0.1.0+torch2.15."""
    return installed("modelport") or "unknown"


def minor(release: str) -> str:
    """2.13 of 2.13.0+cpu: libtorch's C++ ABI changes with this part."""
    return ".".join(release.split("+")[0].split(".")[:2])


def number(release: str) -> tuple[int, ...]:
    """For comparisons; a part that is no number, as in 2.15.0a0, ends it."""
    parts: list[int] = []
    for part in release.split("+")[0].split("."):
        if not part.isdecimal():
            break
        parts.append(int(part))
    return tuple(parts)


def is_buildable(torch: str) -> bool:
    """Whether the source is known to build for this torch."""
    return number(OLDEST["torch"]) <= number(minor(torch)) <= number(NEWEST["torch"])


def fits_executorch(torch: str) -> bool:
    """Whether ExecuTorch's runtime can run beside this torch."""
    return number(minor(torch)) >= number(RUNTIME_TORCH)


def other_torch(built_for: str, found: str) -> tuple[str, list[str]] | None:
    """What is wrong, and ways out, where torch is not the one that the extension was built for."""
    ours = minor(built_for)
    if ours == minor(found):
        return None
    ways = [f"pip install 'torch=={ours}.*'"]
    if is_buildable(found):
        ways.append("build it for the torch that is there, in its source folder: pip install --no-build-isolation .")
    return f"this modelport was built for torch {ours}, and torch {found} is installed", ways
