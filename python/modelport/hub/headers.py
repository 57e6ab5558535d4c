"""A folder with the settings of a model of the hub and the headers of its safetensors files, without the weights.

Each file has its full size and holds a hole in the place of the weights, which takes no room on the disk: whoever opens
the folder finds every tensor with its shape and type. Whoever wants values asks for them here first (`holes_in`): a few
are fetched by range requests, all of them through the hub's cache."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from contextlib import suppress
from pathlib import Path

from ..base.errors import problem
from .files import ADAPTER
from .kept import headers_of, open_folders
from .ranges import Part, fetch_part
from .refusals import in_our_words, not_reached
from .repository import Repository

_FIRST = 64 << 10  # bytes that hold the header of most files, in one request
_LONGEST = 100_000_000  # bytes of a header, by the format's own bound
_BLOCK = 1 << 20  # bytes that are fetched at once where values of small tensors are wanted
_AT_ONCE = 8

_kept: dict[str, Holes] = {}  # until they are closed, or the process ends


class Holes:
    """The weights of a folder that are not there."""

    def __init__(self, repository: Repository, settings: Path, weights: list[str]):
        self.repository, self._settings, self._weights = repository, settings, weights
        self._fetched: set[tuple[str, int]] = set()
        self._is_full = False
        self.folder = Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=open_folders()))
        self.close = weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        with in_our_words(repository.name):
            self._make()

    def _make(self) -> None:
        from concurrent.futures import ThreadPoolExecutor

        for entry in self._settings.iterdir():
            if entry.name not in self._weights:
                (self.folder / entry.name).symlink_to(os.path.realpath(entry))
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            headers = dict(zip(self._weights, threads.map(self._header, self._weights), strict=True))
        for name, header in headers.items():
            with open(self.folder / name, "wb") as file:
                file.write(header.data)
                file.truncate(header.total)

    def _header(self, name: str) -> Part:
        """Length and text of the header, kept for the next time."""
        kept = headers_of(self.repository.name.repository, self.repository.commit) / name
        with suppress(OSError, ValueError):
            total, _, data = kept.read_bytes().partition(b"\n")
            return Part(data, int(total))
        if self.repository.is_offline:
            raise not_reached(self.repository.name, self.repository.error, name)
        first = fetch_part(self._url(name), 0, _FIRST)
        size = 8 + int.from_bytes(first.data[:8], "little")
        if len(first.data) < 8 or size > min(first.total, _LONGEST):
            what = f"{name} of {self.repository.name} is no safetensors file"
            raise problem("E0103", what, "name another revision, or a model that has safetensors")
        data = first.data[:size] if len(first.data) >= size else fetch_part(self._url(name), 0, size).data
        kept.parent.mkdir(parents=True, exist_ok=True)
        part = kept.with_name(f"{kept.name}.{os.getpid()}")
        part.write_bytes(b"%d\n" % first.total + data)
        part.replace(kept)
        return Part(data, first.total)

    def _url(self, name: str) -> str:
        from huggingface_hub import hf_hub_url

        return hf_hub_url(self.repository.name.repository, name, revision=self.repository.commit)

    def fetch(self, file: str, offset: int, size: int) -> None:
        """Gives a part of a file its contents."""
        name, total = Path(file).name, os.path.getsize(file)
        blocks = range(offset // _BLOCK, -(-(offset + size) // _BLOCK))
        missing = [] if self._is_full else [block for block in blocks if (name, block) not in self._fetched]
        if not missing:
            return
        if self.repository.is_offline:
            raise not_reached(self.repository.name, self.repository.error, name)
        start, end = missing[0] * _BLOCK, min((missing[-1] + 1) * _BLOCK, total)
        with in_our_words(self.repository.name):
            part = fetch_part(self._url(name), start, end)
        with open(file, "r+b") as opened:
            opened.seek(start)
            opened.write(part.data)
        self._fetched |= {(name, block) for block in missing}

    def fill(self) -> None:
        """Gives all files their contents: memory that is mapped from them has the weights then."""
        if self._is_full:
            return
        folder = self.repository.with_weights(code=False)
        for name in self._weights:
            with open(folder / name, "rb") as source, open(self.folder / name, "r+b") as target:
                shutil.copyfileobj(source, target, 16 << 20)
        self._is_full = True


def with_headers(repository: Repository, *, code: bool) -> Path:
    """The folder with headers in the place of weights; where the cache has all of them, the folder of the cache."""
    settings = repository.settings(code=code)
    weights = repository.weights(settings)
    if all((settings / name).is_file() for name in weights):
        return settings
    if weights == [ADAPTER]:  # which is small, and wanted for its values
        return repository.with_weights(code=code)
    made = Holes(repository, settings, weights)
    _kept[str(made.folder)] = made
    return made.folder


def holes_in(folder: str | os.PathLike[str]) -> Holes | None:
    """What a folder lacks, where it was made here."""
    return _kept.get(os.fspath(folder))


def close_all() -> None:
    """Removes the folders of headers."""
    while _kept:
        _kept.popitem()[1].close()
