"""What an export came to and what a check found, told to the user."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from ..base.printable import printable
from .console import Console, say
from .quantization_arguments import Variant


@dataclasses.dataclass
class Told:
    """Of a model in one type: for people, and as JSON."""

    lines: list[str]
    data: dict[str, Any]
    last: str = ""  # what to do next


@dataclasses.dataclass
class Export:
    """A model in one type as it is staged. `tell` looks at files that are ours until they take their place: other
    exports may follow."""

    variant: Variant
    tell: Callable[[], Told]
    config: Any  # of the model
    generation_config: Any = None


def tell(console: Console, told: Mapping[str | None, Told]) -> None:
    """The result of the command. Of several types, JSON has each under its name."""
    rows = list(told.values())
    lines = [line for each in rows for line in each.lines] + [console.timings()]
    data = rows[0].data if len(rows) == 1 else {"types": {name: each.data for name, each in told.items()}}
    text = "\n".join(filter(None, (*lines, rows[0].last)))
    console.result(text, {"ok": True} | data | console.steps() | {"notes": console.notes})


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
