"""Text that comes from files, made fit for a terminal and for command lines."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable

# Control characters of both sets, marks that turn the direction of text, and halves of pairs that no terminal takes.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """The text with what could steer a terminal written out: `\\x1b`. Lines and tabs stay."""
    return _UNPRINTABLE.sub(_written_out, text)


def one_line(text: str) -> str:
    """A name: the same, and it cannot pretend to be several lines."""
    return printable(text).replace("\n", "\\n").replace("\t", "\\t")


def shell_quote(path: object) -> str:
    """A path as one word of a command line to type."""
    return shlex.quote(str(path))


def python_text(path: object) -> str:
    """A path as a literal of Python."""
    return json.dumps(str(path), ensure_ascii=False)


def _written_out(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()


def listed(names: Iterable[object], most: int = 8) -> str:
    """The first ones by name, and how many more there are: a decoder has one for each layer."""
    shown = list(map(str, names))
    more = len(shown) - most
    return ", ".join(shown) if more <= 1 else f"{', '.join(shown[:most])} and {more} more"
