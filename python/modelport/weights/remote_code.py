"""Python code that lies in a checkpoint: it runs where the user said so, and is named before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..base.errors import ExportError, problem
from ..base.json_text import parse_json

# Where transformers looks for the names of classes that are not its own.
_CONFIGS = (
    "config.json",
    "tokenizer_config.json",
    "processor_config.json",
    "preprocessor_config.json",
    "image_processor_config.json",
    "video_preprocessor_config.json",
)


def code_files(folder: Path, prefix: str = "Auto") -> list[str]:
    """The files with the code of classes that the folder's own configs name for auto classes, and what they import."""
    files: dict[str, None] = {}
    for config in _CONFIGS:
        known = _read(folder / config).get("auto_map")
        for auto, named in known.items() if isinstance(known, dict) else ():
            if not auto.startswith(prefix):
                continue
            for name in named if isinstance(named, list) else [named]:
                files |= dict.fromkeys(_files_of(folder, name) if isinstance(name, str) else ())
    return list(files)


def refuse_code(folder: Path, what: str, files: list[str], way_out: str) -> ExportError:
    return problem(
        "E0308",
        f"{what} in {folder} needs Python code that lies there: {', '.join(files)}",
        f"read that code, and if you trust it: {way_out}",
    )


def _files_of(folder: Path, name: str) -> list[str]:
    """`modeling_foo.Foo` is a class in modeling_foo.py; `owner/repo--modeling_foo.Foo` one of another repository."""
    repository, _, place = name.rpartition("--")
    file = f"{place.partition('.')[0]}.py"
    if repository:
        return [f"{file} (of {repository}, downloaded)"]
    if not (folder / file).is_file():
        return [file]
    from transformers.dynamic_module_utils import get_relative_import_files

    try:
        imported = get_relative_import_files(folder / file)
    except (OSError, RecursionError, ValueError):  # what cannot be read cannot run either
        imported = []
    return [file, *(Path(path).name for path in imported)]


def _read(path: Path) -> dict[str, Any]:
    try:
        found = parse_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
