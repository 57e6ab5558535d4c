"""What a user typed for a model: a folder that is there, a name of the hub, or neither."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

from ..base.errors import ExportError, problem
from ..base.printable import shell_quote

# As the hub allows them; "gpt2" is the name of a model, too.
_PART = r"[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9_])?"
_NAME = re.compile(rf"(?P<repository>{_PART}(?:/{_PART})?)(?:@(?P<revision>[\w./-]+))?", re.ASCII)
_LONGEST = 96
_FILES = (".onnx", ".pte", ".pt2", ".safetensors", ".json", ".bin", ".gguf")


class HubName(NamedTuple):
    repository: str
    revision: str | None = None  # a branch, a tag or a commit

    def __str__(self) -> str:
        return self.repository if self.revision is None else f"{self.repository}@{self.revision}"


def hub_name(text: str | os.PathLike[str], revision: str | None = None) -> HubName | None:
    """The name that a text is; None for a folder or a file that is there, which always comes first, and for what can
    only be a path."""
    if os.path.exists(text):
        if revision is not None:
            what = f"--revision {revision} is for a name of the hub, and {os.fspath(text)} is here"
            raise problem("E0306", what, "leave it out, or name the model as the hub does: org/name")
        return None
    if not isinstance(text, str):
        return None
    found = _NAME.fullmatch(text)
    if not found or len(found["repository"]) > _LONGEST or ".." in text or "--" in found["repository"]:
        return None
    if text.endswith(_FILES):
        return None
    if revision is not None and found["revision"] not in (None, revision):
        what = f"{text} names the revision {found['revision']}, and --revision another: {revision}"
        raise problem("E0306", what, "leave one of them out")
    return HubName(found["repository"], revision or found["revision"])


def no_such_folder(text: str | os.PathLike[str]) -> ExportError:
    """Of a text that is neither a folder nor could be a name."""
    ways = (*similar(text), "name a folder made by save_pretrained", "name a model of the hub: org/name")
    shown = os.fspath(text)
    if not isinstance(text, str) or text.startswith((".", "~", os.sep)) or text.count("/") > 1:
        return problem("E0103", f"{shown}: no such folder", *ways)
    return problem("E0316", f"{shown} is no folder here, and not what a name of the hub looks like", *ways)


def similar(text: str | os.PathLike[str]) -> list[str]:
    """Folders beside the one that is not there whose names come close: most of these are typing mistakes."""
    import difflib

    path = Path(text)
    try:
        names = [entry.name for entry in os.scandir(path.parent) if entry.is_dir()]
    except OSError:
        return []
    close = difflib.get_close_matches(path.name, names, n=2, cutoff=0.75)
    return [f"there is a folder {shell_quote(path.parent / name)}" for name in close]
