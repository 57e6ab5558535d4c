"""A folder for what the user named: the one that is there, or the one of the hub's cache."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ..base.errors import problem
from .headers import with_headers
from .name import HubName, hub_name, no_such_folder
from .repository import Repository

_origins: dict[str, HubName] = {}
_by_headers: dict[str, bool] = {}  # folders that were asked for, and whether headers were all that was wanted
_bases: dict[tuple[Any, ...], Path] = {}


def checkpoint_folder(
    text: str | os.PathLike[str], *, revision: str | None = None, code: bool = False, headers: bool = False
) -> Path:
    """The folder of a checkpoint. A folder that is there comes before a name of the hub. Of a name, what is needed is
    fetched: Python code in it only with `code`, and with `headers` no weights."""
    name = hub_name(text, revision)
    if name is None:
        if not os.path.exists(text):
            raise no_such_folder(text)
        _by_headers[os.fspath(text)] = headers
        return Path(text)
    repository = Repository(name)
    folder = with_headers(repository, code=code) if headers else repository.with_weights(code=code)
    _by_headers[str(folder)] = headers
    return _noted(folder, repository)


def base_folder(text: str, *, of: Path, revision: Any = None) -> Path:
    """The folder of a model that files in another folder name; as much of it is fetched as was of that one."""
    if hub_name(text) is None:
        if not os.path.isdir(text):
            what = f"{of} was made for {text}, which is not here"
            raise problem("E0104", what, f"put its folder there, or change base_model_name_or_path in {of}")
        return Path(text)
    headers = _by_headers.get(os.fspath(of), False)
    known = (text, revision, headers)
    if known not in _bases or not _bases[known].is_dir():
        wanted = revision if isinstance(revision, str) else None
        _bases[known] = checkpoint_folder(text, revision=wanted, headers=headers)
    return _bases[known]


def exported_folder(text: str | os.PathLike[str], *, revision: str | None = None, ending: str | None = None) -> Path:
    """The folder or file of an artifact, or of one that lies on the hub; `ending` is that of the files of a type."""
    name = hub_name(text, revision)
    if name is None:
        return Path(text)
    repository = Repository(name)
    return _noted(repository.exported(ending), repository)


def origin_of(folder: str | os.PathLike[str]) -> HubName | None:
    """The name and the commit that a folder was fetched by."""
    return _origins.get(os.fspath(folder))


def _noted(folder: Path, repository: Repository) -> Path:
    _origins[str(folder)] = HubName(repository.name.repository, repository.commit)
    return folder
