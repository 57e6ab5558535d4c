"""One HTML file with everything in it: the style, the script and the data. It asks nothing of the network.

What comes from files reaches the page as JSON alone, in a block that no browser runs, and the script puts it there as
text. The policy of the page lets no other script or style run than its own, which it names by their hashes."""

from __future__ import annotations

import base64
import functools
import hashlib
import html
import json
import math
import os
from pathlib import Path
from typing import Any

from ..artifacts.staging import Staging
from ..base.printable import one_line

_PARTS = Path(__file__).parent / "parts"
_SCRIPTS = {
    "report": "elements rows model tree detail search overview weights check making report",
    "diff": "elements diff",
    "fleet": "elements rows fleet",
}


def write_page(kind: str, data: dict[str, Any], path: str | os.PathLike[str]) -> None:
    """Writes the page `kind` ("report", "diff", "fleet") of this data; what was at `path` stays if that fails."""
    text = page_text(kind, data)
    with Staging(path, is_file=True) as staging:
        (staging.folder / staging.name).write_text(text, encoding="utf-8")
        staging.commit()


def page_text(kind: str, data: dict[str, Any]) -> str:
    style, script = _part("page.css"), _script(kind)
    fills = {
        "TITLE": html.escape(one_line(str(data["title"]))),
        "POLICY": f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'",
        "STYLE": style,
        "SCRIPT": script,
        "DATA": _data_block(data),
    }
    pieces = _part("page.html").split("@@")  # text, name, text, name, ..., text
    return "".join(fills[piece] if i % 2 else piece for i, piece in enumerate(pieces))


def _data_block(data: dict[str, Any]) -> str:
    """JSON that cannot end the element it stands in, nor begin another."""
    text = json.dumps(_shown(data), separators=(",", ":"), allow_nan=False)  # ASCII alone
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _shown(value: Any) -> Any:
    """Names as people can see them: what would turn the direction of text, and control characters, are written out."""
    if isinstance(value, str):
        return value if value.isascii() and value.isprintable() else one_line(value)
    if isinstance(value, dict):
        return {_shown(key): _shown(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_shown(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value  # JSON has no infinity


@functools.cache
def _part(name: str) -> str:
    return (_PARTS / name).read_text(encoding="utf-8")


@functools.cache
def _script(kind: str) -> str:
    inside = "\n".join(_part(f"{name}.js") for name in _SCRIPTS[kind].split())
    return f'"use strict";\n(() => {{\n{inside}\n}})();\n'


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
