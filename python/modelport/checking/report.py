"""What a check found, as an object, a table and JSON."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from ..base.errors import ExportError, problem


@dataclasses.dataclass
class Row:
    """One output at one size."""

    size: str  # "example", "batch 1", "longer", "odd"
    axes: dict[str, int]
    output: str
    absolute: float = 0.0  # the largest difference
    relative: float = 0.0  # the largest of an element, by the output's scale and its own magnitude: what atol bounds
    argmax: float | None = None  # share of positions whose largest value is at the same place
    ok: bool | None = True  # None: not compared
    what: str = ""  # what is wrong, where numbers do not say it, or why nothing was compared
    cosine: float | None = None  # between both as one vector each


@dataclasses.dataclass
class Skipped:
    """A size that was not compared, and why."""

    size: str
    axes: dict[str, int]
    why: str


@dataclasses.dataclass
class CheckReport:
    """`ok` says whether every value is that of the model; `print(report)` shows the table."""

    artifact: str
    atol: float
    rows: list[Row] = dataclasses.field(default_factory=list)
    skipped: list[Skipped] = dataclasses.field(default_factory=list)
    first: dict[str, Any] | None = None  # the first value of the graph that differs
    min_cosine: float | None = None  # where weights in few bits change values: the floor, in the place of atol

    @property
    def ok(self) -> bool:
        verdicts = [row.ok for row in self.rows if row.ok is not None]
        return bool(verdicts) and all(verdicts)

    def __bool__(self) -> bool:
        return self.ok

    @property
    def bound(self) -> str:
        """What was allowed."""
        return f"atol {self.atol:g}" if self.min_cosine is None else f"cosine from {self.min_cosine:g} on"

    def to_dict(self) -> dict[str, Any]:
        report = dataclasses.asdict(self) | {"ok": self.ok}
        for row in report["rows"]:  # JSON has no infinity
            row["absolute"], row["relative"] = (_plain(row[key]) for key in ("absolute", "relative"))
        return report

    def __str__(self) -> str:
        head = ["size", "axes", "output", "max abs", "max rel", "cosine", "argmax", ""]
        lines = [head, *([row.size, axes_text(row.axes), row.output, *_cells(row)] for row in self.rows)]
        widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
        text = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines]
        text += [f"{skip.size}: skipped, {skip.why}" for skip in self.skipped]
        return "\n".join(line.rstrip() for line in text)

    def error(self) -> ExportError:
        """The mismatch as an error that names the first value that differs."""
        if all(row.ok is None for row in self.rows):
            passed_over = [f"{row.size}: {row.output} is {row.what}" for row in self.rows]
            whys = passed_over + [f"{skip.size}: {skip.why}" for skip in self.skipped]
            return problem(
                "E0401",
                f"no value of {self.artifact} was compared: {'; '.join(whys) or 'there was nothing to compare'}",
                "pass inputs that it takes: inputs={...}",
                "export without a check: --no-check",
            )
        wrong = [row for row in self.rows if row.ok is False]
        summary = ", ".join(dict.fromkeys(_one(row) for row in wrong[:3]))
        if self.min_cosine is not None:
            return problem(
                "E0401",
                f"weights in few bits change the values of {self.artifact} too much: {summary}, where a cosine of "
                f"{self.min_cosine:g} is wanted",
                "blocks of weights, on inputs that stay floats: --int8 blocks",
                "--dtype fp16",
                "allow it: --min-cosine",
            )
        what = f"values of {self.artifact} differ from the model: {summary}"
        where = None
        if self.first is not None:
            what += f"; the first that differs is {self.first['text']}"
            where = {key: self.first[key] for key in ("file", "line", "module") if self.first.get(key)}
        return problem(
            "E0401",
            what,
            f"a difference that you can accept is allowed with a larger tolerance than {self.atol:g}: --atol",
            "report it with the model's config.json",
            where=where,
        )


def _cells(row: Row) -> list[str]:
    """The numbers of a row and what they come to."""
    if row.ok is None:
        return ["", "", "", "", row.what]
    cosine = "" if row.cosine is None else f"{row.cosine:.6f}"
    same = "" if row.argmax is None else f"{100 * row.argmax:.4g} %"
    verdict = ", ".join(filter(None, ("ok", row.what))) if row.ok else row.what or "differs"
    return [f"{row.absolute:.2g}", f"{row.relative:.2g}", cosine, same, verdict]


def _one(row: Row) -> str:
    return f"{row.output} {amount(row)} at {axes_text(row.axes) or row.size}"


def amount(row: Row) -> str:
    """By how much a row differs, in words."""
    kept = "" if row.argmax is None else f", argmax kept in {100 * row.argmax:.4g} %"
    direction = "" if row.cosine is None else f" (cosine {row.cosine:.4f}{kept})"
    return row.what or f"by {row.absolute:.3g}{direction}"


def axes_text(axes: dict[str, int]) -> str:
    return ", ".join(f"{name} {size}" for name, size in axes.items())


def _plain(number: float) -> float | str:
    return number if math.isfinite(number) else str(number)
