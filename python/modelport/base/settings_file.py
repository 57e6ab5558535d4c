"""Settings in files: JSON objects, as checkpoints and exports have them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .errors import problem
from .json_text import parse_json


def read_settings(path: Path, way_out: str = "download it again") -> dict[str, Any]:
    """The object in a file. FileNotFoundError is the caller's; what is no such object is refused."""
    try:
        found = parse_json(path.read_text(encoding="utf-8"))
        why = "" if isinstance(found, dict) else "not a JSON object"
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        found, why = None, str(error)
    if why:
        raise problem("E0103", f"{path}: {why}", way_out)
    return found
