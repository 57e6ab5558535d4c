"""Output that takes its place at once when it is whole: a folder, or a file with its weights beside it.

`src/driver` does it; here is what a user is told, and how much has been written so far. Several exports into one place
wait for each other's last step, and the last one stays."""

from __future__ import annotations

import os
from pathlib import Path

from .. import _artifact
from ..base.errors import problem
from .artifact import PARTS


class Staging:
    """`with Staging(out) as staging:` write into `staging.folder`, then `staging.commit()`."""

    def __init__(self, out: str | os.PathLike[str], *, is_file: bool | None = None, model: str = "model.onnx"):
        """`model` is what the model file of a folder is called."""
        self.out, self._model = Path(os.path.abspath(out)), model
        self.is_file = self.out.suffix == Path(model).suffix if is_file is None else is_file
        _refuse_wrong_kind(self.out, self.is_file, Path(model).suffix)
        if not self.is_file:
            _refuse_other_format(self.out, model)
        self._place: _artifact.ArtifactFolder | None = None

    @property
    def name(self) -> str:
        """What the model file is called."""
        return self.out.name if self.is_file else self._model

    def __enter__(self) -> Staging:
        self._place = _artifact.ArtifactFolder(os.fspath(self.out), self.is_file, list(PARTS))
        self.folder, self.target = Path(self._place.folder), Path(self._place.target)
        self._before = _written_by_this_process()
        return self

    def __exit__(self, *_: object) -> None:
        self.discard()

    def discard(self) -> bool:
        """Removes what was not committed, and folders that were made for it; whether there was any."""
        return self._place is not None and self._place.discard()

    def written(self) -> int:
        """Bytes written so far; files have no name until they are whole, so the system is asked."""
        return _written_by_this_process() - self._before

    def commit(self) -> list[Path]:
        """The files in their places, of a single model that first."""
        assert self._place is not None
        return [Path(file) for file in self._place.commit()]


def _refuse_other_format(out: Path, model: str) -> None:
    """An export replaces an earlier one in its folder: one of another format would be gone."""
    for other in {"model.onnx", "model.pte", "openvino_model.xml"} - {model}:
        if (out / other).exists():
            what = f"{out} has {other}, an export of another format, which this one would replace"
            raise problem("E0105", what, "name another folder", f"remove {out / other}")


def _refuse_wrong_kind(out: Path, is_file: bool, suffix: str) -> None:
    if is_file and out.is_dir():
        raise problem("E0105", f"{out} is a folder, and the name of a file", "name another file, or a folder")
    if not is_file and out.exists() and not out.is_dir():
        raise problem("E0105", f"{out} is a file; the output is a folder", f"name another folder, or a file{suffix}")
    for parent in out.parents:
        if parent.exists():
            where = out if out.is_dir() else parent
            if not parent.is_dir():
                raise problem("E0105", f"{parent} is a file, so that nothing can be in it", "name another folder")
            if not os.access(where, os.W_OK | os.X_OK):
                raise problem("E0103", f"{where} cannot be written to", "write to a folder of your own")
            return


def _written_by_this_process() -> int:
    try:
        rows = Path("/proc/self/io").read_text().splitlines()
    except OSError:
        return 0
    return next((int(row.removeprefix("wchar:")) for row in rows if row.startswith("wchar:")), 0)
