"""The page of a difference."""

from __future__ import annotations

import os

from .differences import Difference
from .page import write_page


def write_difference(found: Difference, path: str | os.PathLike[str]) -> None:
    titles = dict.fromkeys([found.before.title, found.after.title])
    data = {
        "title": f"What differs: {' and '.join(titles)}",
        "before": found.before.path or found.before.title,
        "after": found.after.path or found.after.title,
        "same": found.same,
        "notes": found.notes,
        "sections": [
            [
                section.name.capitalize(),
                section.same,
                [[one.kind, one.part, one.name, one.words] for one in section.changes],
            ]
            for section in found.sections
        ],
    }
    write_page("diff", data, path)
