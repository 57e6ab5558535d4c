"""JSON that comes from files."""

from __future__ import annotations

import json
from typing import Any


def parse_json(text: str) -> Any:
    """Raises ValueError for what is no JSON, also where it is nested without end."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
