"""What a check found, told to the user."""

from __future__ import annotations

from typing import Any

from ..base.printable import printable
from .console import Console, say


def refuse_difference(console: Console, report: Any) -> None:
    """Nothing wrong is called a success."""
    if report is None or report.ok:
        return
    if not console.quiet and not console.as_json:
        say(printable(str(report)))
    raise report.error()


def refuse_unless_fewer_bits(console: Console, report: Any, limit: float | None, config: Any) -> None:
    """The same, of a program whose weights may be stored in fewer bits: how much that may change is for the user."""
    if limit is None and config.fewer_bits():
        console.note("weights in fewer bits change values: the check tells by how much, and --atol sets a limit")
    else:
        refuse_difference(console, report)
