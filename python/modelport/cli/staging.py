"""Output that takes its place at once when it is whole: a folder, or a file with its weights beside it.

Everything is written into a folder beside the place. If the command fails, that folder is removed; if the process is
killed, a waiting shell removes it. What was at the place stays until the new is whole, and then goes in one step."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from ..errors import problem

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
# Files that an export writes, without .onnx.
_PARTS = (
    "model", "decoder_model", "decoder_with_past_model", "encoder_model", "decoder_model_merged", "vision_encoder",
    "audio_encoder", "embed_tokens",
)  # fmt: skip


class Staging:
    """`with Staging(out) as staging:` write into `staging.folder`, then `staging.commit()`."""

    def __init__(self, out: str | os.PathLike[str]):
        self.out = Path(os.path.abspath(out))
        self.single = self.out.suffix == ".onnx"  # a file, not a folder
        self.target = self.out.parent if self.single else self.out.resolve()
        _refuse_wrong_kind(self.out, self.single)
        # Beside the target, so that relative paths in the files stay right and the whole folder can be renamed; inside
        # it where the files join others, or where nothing can be made beside it.
        self.beside = not self.single and _can_be_beside(self.target)
        self._made: list[Path] = []
        self._sweeper: subprocess.Popen[bytes] | None = None

    @property
    def name(self) -> str:
        """What the model file is called."""
        return self.out.name if self.single else "model.onnx"

    def __enter__(self) -> Staging:
        parent = self.target.parent if self.beside else self.target
        try:
            self._make(parent)
            self.folder = Path(tempfile.mkdtemp(prefix=f".{self.out.name}.", suffix=".partial", dir=parent))
        except OSError as error:
            self._unmake()
            raise problem(
                "E0103", f"nothing can be written to {parent}: {error.strerror}", "write to a folder of your own"
            ) from error
        mode = self.target.stat().st_mode & 0o7777 if self.target.is_dir() else 0o777 & ~_umask()
        self.folder.chmod(mode if self.beside else 0o700)
        self._sweeper = _sweeper(self.folder)
        self._before = _written_by_this_process()
        return self

    def __exit__(self, *_: object) -> None:
        self.discard()

    def discard(self) -> None:
        """Removes what was not committed, and folders that were made for it."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self._unmake()
        if self._sweeper is not None:
            self._sweeper.communicate()
            self._sweeper = None

    def written(self) -> int:
        """Bytes written so far; files have no name until they are whole, so the system is asked."""
        return _written_by_this_process() - self._before

    def commit(self) -> None:
        if self.beside and not self.target.exists():
            os.rename(self.folder, self.target)
        elif not (self.beside and self._exchange()):
            self._move_files()
        self._made.clear()

    def _make(self, folder: Path) -> None:
        missing = [p for p in (folder, *folder.parents) if not p.exists()]
        for path in reversed(missing):
            path.mkdir()
            self._made.append(path)

    def _unmake(self) -> None:
        for folder in reversed(self._made):
            try:
                folder.rmdir()
            except OSError:  # something is in it by now
                break

    def _exchange(self) -> bool:
        """Swaps the folders in one step; files that are not ours come along. False where that cannot be done."""
        old = list(os.scandir(self.target))
        if not all(entry.is_file(follow_symlinks=False) for entry in old):
            return False
        for entry in old:
            kept = self.folder / entry.name
            if not kept.exists() and not _is_of_an_older_export(entry.name):
                _link_or_copy(entry.path, kept)
        return _swap(self.folder, self.target)

    def _move_files(self) -> None:
        """One by one, the models last; what was there comes back if that fails halfway."""
        files = [path.relative_to(self.folder) for path in self.folder.rglob("*") if path.is_file()]
        saved = self.folder / ".before"
        moved: list[Path] = []
        try:
            for name in sorted(files, key=lambda name: name.suffix == ".onnx"):
                place = self.target / name
                place.parent.mkdir(exist_ok=True)
                if place.exists():
                    (saved / name).parent.mkdir(parents=True, exist_ok=True)
                    _link_or_copy(place, saved / name)
                os.replace(self.folder / name, place)
                moved.append(name)
        except BaseException:
            for name in moved:
                if (saved / name).exists():
                    os.replace(saved / name, self.target / name)
                else:
                    (self.target / name).unlink()
            raise


def _refuse_wrong_kind(out: Path, single: bool) -> None:
    if single and out.is_dir():
        raise problem("E0301", f"{out} is a folder, and the name of a file", "name another file, or a folder")
    if not single and out.exists() and not out.is_dir():
        raise problem("E0301", f"{out} is a file; the output is a folder", "name another folder, or a file.onnx")
    for parent in out.parents:
        if parent.exists():
            where = out if out.is_dir() else parent
            if not parent.is_dir():
                raise problem("E0301", f"{parent} is a file, so that nothing can be in it", "name another folder")
            if not os.access(where, os.W_OK | os.X_OK):
                raise problem("E0103", f"{where} cannot be written to", "write to a folder of your own")
            return


def _can_be_beside(folder: Path) -> bool:
    parent = folder.parent
    if not folder.exists():
        return True
    return os.access(parent, os.W_OK | os.X_OK) and parent.stat().st_dev == folder.stat().st_dev and parent != folder


def _link_or_copy(source: str | Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:  # not every file system has links
        shutil.copy2(source, target)


def _is_of_an_older_export(name: str) -> bool:
    """Weights beside a model that is replaced: with fewer shards than before, the rest would stay for ever. Parts that
    the new export does not have would be taken for its own."""
    stem, _, ending = name.partition(".onnx")
    return stem in _PARTS and (not ending or ending.startswith("_data"))


def _swap(one: Path, other: Path) -> bool:
    try:
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return False
    names = os.fsencode(one), os.fsencode(other)
    return renameat2(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE) == 0


def _sweeper(folder: Path) -> subprocess.Popen[bytes] | None:
    """A shell that waits until this process is gone, however it goes, and removes the folder."""
    command = ["/bin/sh", "-c", 'cat > /dev/null; rm -rf -- "$0"', os.fspath(folder)]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    try:
        return subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True, **quiet)
    except OSError:
        return None


def _written_by_this_process() -> int:
    try:
        rows = Path("/proc/self/io").read_text().splitlines()
    except OSError:
        return 0
    return next((int(row.removeprefix("wchar:")) for row in rows if row.startswith("wchar:")), 0)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
