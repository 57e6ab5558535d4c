"""All rows of a fleet, as a line of text and as a page."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import Any

from ..pages.page import write_page


class Summary:
    def __init__(self, total: int, out: str):
        self.total, self.out, self.started = total, out, time.monotonic()
        self.rows: list[dict[str, Any]] = []

    def add(self, row: dict[str, Any]) -> None:
        self.rows.append(row)

    @property
    def done(self) -> int:
        return len(self.rows)

    @property
    def ok(self) -> bool:
        return self.done == self.total and all(row["ok"] for row in self.rows)

    def counts(self) -> dict[str, int]:
        found = Counter("failed" if not row["ok"] else "kept" if row.get("cached") else "made" for row in self.rows)
        return {"total": self.total, "made": found["made"], "kept": found["kept"], "failed": found["failed"]}

    def seconds(self) -> float:
        return time.monotonic() - self.started

    def to_dict(self) -> dict[str, Any]:
        failed = [{key: row[key] for key in ("name", "format", "error")} for row in self.rows if not row["ok"]]
        return {"ok": self.ok, **self.counts(), "seconds": round(self.seconds(), 3), "failures": failed}

    def text(self, page: Path) -> str:
        counts = self.counts()
        rate = 60 * self.done / max(self.seconds(), 1e-9)
        lines = [
            f"{counts['made']} made, {counts['kept']} kept from before, {counts['failed']} failed, in "
            f"{self.seconds():.1f} s ({rate:.3g} a minute)"
        ]
        codes = Counter(row["error"]["code"] or "ended" for row in self.rows if not row["ok"])
        lines += [f"  {count} {code}" for code, count in codes.most_common()]
        return "\n".join([*lines, f"wrote {page}"])


def write_summary(summary: Summary, path: Path) -> None:
    counts = summary.counts()
    data = {
        "title": "Fleet",
        "path": summary.out,
        "seconds": round(summary.seconds(), 3),
        "counts": counts,
        "rows": [_row(row) for row in sorted(summary.rows, key=lambda row: (row["ok"], row["name"], row["format"]))],
    }
    write_page("fleet", data, path)


def _row(row: dict[str, Any]) -> list[Any]:
    result = row.get("result") or {}
    error = row.get("error") or {"code": "", "what": ""}
    state = "failed" if not row["ok"] else "kept" if row.get("cached") else "made"
    return [
        row["name"],
        row["format"],
        state,
        row["seconds"],
        row.get("bytes"),
        result.get("memory"),
        error["code"],
        error["what"],
        row["model"],
        row.get("place", ""),
        row.get("said", ""),
    ]
