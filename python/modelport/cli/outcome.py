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
