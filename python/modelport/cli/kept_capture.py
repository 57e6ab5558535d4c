"""The last capture of a process that exports a model in one format after the other.

What a model computes does not depend on the format: where the checkpoint, its files, the example and the type are the
same, the graph is, too. Only captures that take hardly any memory are kept, as those do whose weights are in their
files; the next model takes their place."""

from __future__ import annotations

import copy
import dataclasses
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# What the graph and the example are made of, besides the folder.
_ASKED = (
    *("task", "dtype", "batch", "sequence", "image_size", "inputs", "no_dynamic_axes", "join_lists"),
    "trust_remote_code",
)
_MOST = 1 << 26  # bytes of weights: much less than a worker takes anyway
_Warning = tuple[tuple[Any, ...], dict[str, Any]]  # as warnings.showwarning got it


@dataclasses.dataclass(frozen=True)
class _Kept:
    key: tuple[Any, ...]
    captured: Any
    inputs: Any
    told: str
    warned: list[_Warning]


_allowed = False
_last: _Kept | None = None
_again = False  # whether it served again since the last `settle`


def allow() -> None:
    """To be called by a process that is there for exports and nothing else."""
    global _allowed
    _allowed = True


def settle() -> bool:
    """After an export: whether it took the capture of one before. Weights that were read for it are let go."""
    global _last, _again
    if _last is not None and not _is_small(_last.captured):
        _last = None
    again, _again = _again, False
    return again


def capture(loading: Any) -> Any:
    """What `loading.captured_now()` gives, or gave for an export just before; the same warnings, too."""
    global _last, _again
    if not _allowed:
        return loading.captured_now()
    key = _key(loading)
    if _last is not None and _last.key == key:
        _again = True
        loading.inputs, loading.told = copy.deepcopy(_last.inputs), _last.told
        for args, more in _last.warned:
            warnings.showwarning(*args, **more)
        return _last.captured
    _last = None  # its files are closed before others are opened
    with _noted_warnings() as warned:
        captured = loading.captured_now()
    if _is_small(captured):
        _last = _Kept(key, captured, copy.deepcopy(loading.inputs), loading.told, warned)
    return captured


def _is_small(captured: Any) -> bool:
    return getattr(captured, "bytes_held", _MOST) < _MOST


def _key(loading: Any) -> tuple[Any, ...]:
    asked = tuple(getattr(loading.args, name, None) for name in _ASKED)
    given = [loading.args.inputs] if loading.args.inputs is not None else []
    files = sorted(file for file in loading.folder.rglob("*") if file.is_file())
    return (type(loading), os.path.realpath(loading.folder), asked, tuple(map(_stamp, (*files, *map(Path, given)))))


def _stamp(file: Path) -> tuple[str, int, int, int]:
    found = file.stat()
    return os.fspath(file), found.st_ino, found.st_size, found.st_mtime_ns


@contextmanager
def _noted_warnings() -> Iterator[list[_Warning]]:
    """Those that are shown, which they are all the same."""
    noted: list[_Warning] = []
    with warnings.catch_warnings():
        show = warnings.showwarning

        def shown(*args: Any, **more: Any) -> None:
            noted.append((args, more))
            show(*args, **more)

        warnings.showwarning = shown
        yield noted
