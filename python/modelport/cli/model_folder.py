"""The model of a command: a folder that is here, or a name of the hub, whose files are fetched."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..hub.folder import checkpoint_folder, origin_of
from ..hub.headers import close_all
from ..hub.name import hub_name
from .console import Console


def fetch_model(args: argparse.Namespace, console: Console) -> Path:
    """The checkpoint folder of `args.model`, which names that folder afterwards."""
    if hub_name(args.model, args.revision) is None:
        return checkpoint_folder(args.model)
    with console.timed("download"):  # the hub's own bars tell how far it is
        folder = checkpoint_folder(args.model, revision=args.revision, code=_trusts(args))
    console.note(f"{args.model} of the hub is {origin_of(folder)}, in {folder}")
    args.model = os.fspath(folder)
    return folder


@contextmanager
def with_headers(args: argparse.Namespace, console: Console) -> Iterator[Path]:
    """The same where no weights are needed: of those of a name, only the headers are fetched."""
    with console.stage("download"):
        folder = checkpoint_folder(args.model, revision=args.revision, code=_trusts(args), headers=True)
    try:
        yield folder
    finally:
        close_all()


def _trusts(args: argparse.Namespace) -> bool:
    return bool(getattr(args, "trust_remote_code", False))
