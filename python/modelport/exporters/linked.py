"""Checkpoint files as the weights of an ONNX model, without copying them.

onnxruntime opens weights only in the folder of the model or below it, and follows symbolic links to where they lead. So
the files get a second name in that folder, by hard links; those that lie there already are used as they are. Whoever
overwrites the checkpoint overwrites them: the model carries fingerprints, by which loading it notices."""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from .. import _artifact
from ..base.errors import problem

Places = Mapping[str, tuple[str, int]]  # file and offset by the name of the weight


@contextmanager
def linked(places: Places, model: Path, home: Path | None = None) -> Iterator[tuple[Places, dict[str, str]]]:
    """The same places in files that a model at this path may use, and a fingerprint of each file by its name there; a
    failure inside takes the new names back. `home` is the folder that the model will be in, if that is another."""
    folder = Path(os.path.realpath(home or model.parent))
    by_file: dict[str, str] = {}
    prints: dict[str, str] = {}
    made: list[Path] = []
    try:
        for file in dict.fromkeys(file for file, _ in places.values()):
            real = Path(os.path.realpath(file))
            lies_there = real.is_relative_to(folder)
            used = real if lies_there else _second_name(real, model, made)
            by_file[file] = os.fspath(used)
            prints[os.fspath(used.relative_to(folder)) if lies_there else used.name] = _fingerprint(used)
        yield {name: (by_file[file], offset) for name, (file, offset) in places.items()}, prints
    except BaseException:
        for name in made:
            name.unlink()
        raise


def _fingerprint(file: Path) -> str:
    now = file.stat()
    return _fingerprint_of(file, (now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns))


@functools.lru_cache(maxsize=256)
def _fingerprint_of(file: Path, _state: tuple[int, ...]) -> str:
    """The parts of a model point into the same files, which are read once."""
    return _artifact.fingerprint(os.fspath(file))


def _second_name(file: Path, model: Path, made: list[Path]) -> Path:
    """A name as that of weights beside a model: the first that is free, or that the file has already."""
    first = Path(f"{model}_data")
    for name in itertools.chain([first], (Path(f"{first}_{i}") for i in itertools.count(1))):
        if not name.exists():
            break
        if name.samefile(file):
            return name
    try:
        os.link(file, name)
    except OSError as error:
        raise problem(
            "E0103",
            f"{file} cannot have a second name in {model.parent} ({error.strerror}), which weights='link' needs",
            f"write the model into the folder of the weights: {file.parent / 'model.onnx'}",
            "write to a folder of your own on the same disk",
            "copy the weights: weights='copy', or --weights copy",
        ) from error
    made.append(name)
    return name
