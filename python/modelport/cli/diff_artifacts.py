"""`modelport diff`: two artifacts, captures or checkpoints side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..pages.difference_page import write_difference
from ..pages.differences import diff
from ..quick_imports.command import import_quickly
from .console import Console

SAME, DIFFERENT = 0, 1


def run(args: Any, console: Console) -> int:
    if any(Path(path).suffix == ".pt2" for path in (args.before, args.after)):
        import_quickly()  # its reader needs torch
    found = diff(args.before, args.after)
    if args.html:
        write_difference(found, args.html)
    console.result(found.text(most=10**9 if args.all else 20), found.to_dict())
    return SAME if found.same else DIFFERENT
