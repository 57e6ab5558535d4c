"""A folder for what the user named: the one that is there, or the one of the hub's cache."""

from __future__ import annotations

import os
from pathlib import Path

from .headers import with_headers
from .name import HubName, hub_name, no_such_folder
from .repository import Repository

_origins: dict[str, HubName] = {}


def checkpoint_folder(
    text: str | os.PathLike[str], *, revision: str | None = None, code: bool = False, headers: bool = False
) -> Path:
    """The folder of a checkpoint. A folder that is there comes before a name of the hub. Of a name, what is needed is
    fetched: Python code in it only with `code`, and with `headers` no weights."""
    name = hub_name(text, revision)
    if name is None:
        if not os.path.exists(text):
            raise no_such_folder(text)
        return Path(text)
    repository = Repository(name)
    folder = with_headers(repository, code=code) if headers else repository.with_weights(code=code)
    return _noted(folder, repository)


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
