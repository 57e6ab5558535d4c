"""`modelport check`: an artifact against its model."""

from __future__ import annotations

from typing import Any

from ..artifacts.artifact import Artifact, find_model, generates
from ..artifacts.pte import find_program, read_program
from ..quick_imports.command import import_quickly
from .console import Console


def run(args: Any, console: Console) -> bool:
    path = args.artifact
    program = find_program(path)
    if program is not None:
        read_program(program)  # a broken file is reported before torch is imported
        path = program
    elif not generates(path):
        path = find_model(path)
        Artifact(path)  # as above
    with console.stage("check"):
        import_quickly()
        from ..checking import QualityReport, check
        from ..checking.quality import QualityAsked

        quality = QualityAsked(args.text, args.max_perplexity_growth)
        report = check(path, args.model, atol=args.atol, quality=quality)
    if isinstance(report, QualityReport):
        bound = f"{report.max_growth:g} % more perplexity allowed"
    else:
        bound = f"atol {report.atol:g}"
    console.result(f"{report}\nchecked in {console.seconds['check']:.2f} s, {bound}", report.to_dict())
    if not report.ok:
        if not console.as_json:
            console.failure(report.error())
        return False
    return True
