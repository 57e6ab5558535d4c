"""Checkpoint files as the weights of an ONNX model, without copying them.

onnxruntime opens weights only in the folder of the model or below it, and follows symbolic links to where they lead. So
the files get a second name in that folder, by hard links; those that lie there already are used as they are. Whoever
overwrites the checkpoint overwrites them: the model carries fingerprints, by which loading it notices."""

from __future__ import annotations

import itertools
import os
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
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


_meanwhile: list[threading.Thread] = []
_known: dict[tuple[int, ...], str] = {}  # by what the system says of a file, whatever its name


def fingerprint_meanwhile(files: Iterable[Path]) -> None:
    """Has a thread read files that are about to be linked, while this one goes on. A file that changes afterwards is
    read again, and one that cannot be read fails where it is needed."""

    def read() -> None:
        if sys.platform == "linux":  # which has a priority for each thread: somebody waits for the others
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 10)
        for file in files:
            with suppress(Exception):
                _read(file)

    _meanwhile.append(threading.Thread(target=read))
    _meanwhile[-1].start()


def _fingerprint(file: Path) -> str:
    while _meanwhile:
        _meanwhile.pop().join()
    return _read(file)


def _read(file: Path) -> str:
    """The parts of a model point into the same files, which are read once."""
    now = file.stat()
    state = (now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns)
    if state not in _known:
        _known[state] = _artifact.fingerprint(os.fspath(file))
    return _known[state]


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
