"""What was made, kept by what it was made of: the checkpoint's bytes, the settings and the versions of who made it.

An entry is a folder that takes its place in one step. Files of an artifact have a second name in the cache (hard
links): one that was changed in place since is noticed by its size and date, and made again."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import shutil
import socket
import uuid
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from .. import _artifact
from .jobs import Job

_PIECE = 1 << 22
_RESULT, _FILES = "result.json", "artifact"
_MAKERS = ("modelport", "torch", "transformers", "onnxruntime", "executorch")


class Cache:
    def __init__(self, folder: Path):
        self.folder = folder
        self._known = folder / "checkpoints"

    def key(self, job: Job, checkpoint: Path) -> str:
        """The same for the same bytes, settings and versions, wherever the checkpoint lies."""
        parts = [self.fingerprint(checkpoint), job.format, list(job.flags), _makers()]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def fingerprint(self, checkpoint: Path) -> str:
        """Of all files in the folder. What it was is remembered with their dates, so that bytes are read once."""
        files = sorted(file for file in checkpoint.rglob("*") if file.is_file() and ".git" not in file.parts)
        stats = [(str(file.relative_to(checkpoint)), *_stamp(file)) for file in files]
        dated = hashlib.sha256(json.dumps([str(checkpoint.resolve()), stats]).encode()).hexdigest()
        known = self._known / dated[:2] / dated
        with contextlib.suppress(OSError):
            return known.read_text()
        found = hashlib.sha256()
        for file in files:
            found.update(f"{file.relative_to(checkpoint)}\0{file.stat().st_size}\0".encode())
            _read_into(found, file)
        self._write(known, found.hexdigest().encode())
        return found.hexdigest()

    def entry(self, key: str) -> Path:
        return self.folder / key[:2] / key

    def find(self, key: str) -> dict[str, Any] | None:
        """What is known of the key; None where nothing is, or where its files are not what they were."""
        entry = self.entry(key)
        try:
            result = json.loads((entry / _RESULT).read_text())
        except (OSError, ValueError):
            return None
        files = {name: tuple(stamp) for name, stamp in result.pop("stamps").items()}
        if all(_stamp_of(entry / _FILES / name) == stamp for name, stamp in files.items()):
            return result
        shutil.rmtree(entry, ignore_errors=True)
        return None

    def begin(self) -> Path:
        """A folder to make something in."""
        made = self.folder / f".{socket.gethostname()}.{os.getpid()}.{uuid.uuid4().hex}"
        made.mkdir(parents=True)
        return made

    def keep(self, key: str, made: Path, result: dict[str, Any]) -> None:
        """`made` has `artifact`, or nothing where the result is a refusal; it becomes the entry."""
        files = [file for file in (made / _FILES).rglob("*") if file.is_file()]
        stamps = {str(file.relative_to(made / _FILES)): _stamp(file) for file in files}
        (made / _RESULT).write_text(json.dumps(result | {"stamps": stamps}))
        entry = self.entry(key)
        entry.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.rename(made, entry)
        except OSError:  # somebody else was quicker: it is the same
            shutil.rmtree(made, ignore_errors=True)

    def link(self, key: str, target: Path) -> None:
        """Gives the files of an entry their places; what was at `target` goes."""
        source = self.entry(key) / _FILES
        fresh = target.parent / f".{target.name}.{uuid.uuid4().hex}"
        try:
            for file in sorted(source.rglob("*")):
                place = fresh / file.relative_to(source)
                if file.is_file():
                    place.parent.mkdir(parents=True, exist_ok=True)
                    _link(file, place)
            if target.is_symlink() or target.is_file():
                target.unlink()
            shutil.rmtree(target, ignore_errors=True)
            os.rename(fresh, target)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)

    def sweep(self) -> None:
        """Removes what processes of this machine that are no more have left half made."""
        for folder in self.folder.glob(f".{socket.gethostname()}.*.*"):
            process = folder.name.rsplit(".", 2)[1]
            if process.isdecimal() and not Path(f"/proc/{process}").exists():
                shutil.rmtree(folder, ignore_errors=True)

    def _write(self, file: Path, content: bytes) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        fresh = file.with_name(f".{file.name}.{uuid.uuid4().hex}")
        fresh.write_bytes(content)
        os.replace(fresh, file)


def _read_into(digest: Any, file: Path) -> None:
    with file.open("rb") as opened:
        while piece := opened.read(_PIECE):
            digest.update(piece)


def _stamp(file: Path) -> tuple[int, int]:
    found = file.stat()
    return found.st_size, found.st_mtime_ns


def _stamp_of(file: Path) -> tuple[int, int] | None:
    try:
        return _stamp(file)
    except OSError:
        return None


def _link(file: Path, place: Path) -> None:
    try:
        os.link(file, place)
    except OSError:  # another disk, or one without links
        shutil.copy2(file, place)


@functools.cache
def _makers() -> list[str]:
    """Versions of all that decides on the bytes of an artifact; of our own build its very bytes."""
    rows = []
    for package in _MAKERS:
        with contextlib.suppress(PackageNotFoundError):
            rows.append(f"{package} {version(package)}")
    own = hashlib.sha256()
    home = Path(_artifact.__file__).parent
    for file in sorted([*home.glob("_*.so"), *Path(__file__).parent.parent.rglob("*.py")]):
        _read_into(own, file)
    return [*rows, own.hexdigest()]
