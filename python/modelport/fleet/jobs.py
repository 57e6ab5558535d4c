"""The list of models as a user writes it, and what is to be done for each."""

from __future__ import annotations

import dataclasses
import itertools
import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..base.errors import problem
from ..hub.name import hub_name

# In this order a model is exported: for the last its weights may have to be read, and the others do without.
FORMATS = ("onnx", "executorch", "pt2")
_LINE = "write a line for each model: its folder, and flags of its own, if any: ./bert-base --task fill-mask"


@dataclasses.dataclass(frozen=True)
class Job:
    """One model in one format."""

    name: str  # of its folder in OUT
    model: str  # its checkpoint
    format: str
    flags: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        return f"{self.name} {self.format}"

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


def read_jobs(file: Path, formats: Sequence[str], flags: Mapping[str, Sequence[str]]) -> list[Job]:
    """`flags` has those of each format, for all models. Folders are as seen from where the command runs."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise problem("E0103", f"{file}: {getattr(error, 'strerror', None) or error}", _LINE) from error
    models: dict[str, tuple[str, list[str]]] = {}
    for number, line in enumerate(lines, 1):
        try:
            words = shlex.split(line, comments=True)
        except ValueError as error:
            raise problem("E0306", f"{file}:{number}: {error}", _LINE) from error
        if not words:
            continue
        path = os.path.abspath(words[0]) if hub_name(words[0]) is None else words[0]
        row = (path, words[1:])
        if row in models.values():
            raise problem("E0306", f"{file}:{number}: {words[0]} is in the list twice", "leave one of them out")
        models[_name(row[0], models)] = row
    if not models:
        raise problem("E0306", f"{file} names no model", _LINE)
    return [
        Job(name, model, form, (*flags.get(form, ()), *own))
        for name, (model, own) in models.items()
        for form in formats
    ]


def _name(path: str, taken: Mapping[str, Any]) -> str:
    """The last part of the path; with what is above it, or a number, where two are called the same."""
    parts = [part for part in Path(path).parts if part != os.sep]
    names = ("-".join(parts[-count:]) for count in range(1, len(parts) + 1))
    numbered = (f"{parts[-1]}-{number}" for number in itertools.count(2))
    return next(name for name in itertools.chain(names, numbered) if name not in taken)
