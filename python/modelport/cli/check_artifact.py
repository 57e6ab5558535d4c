"""`modelport check`: an artifact against its model."""

from __future__ import annotations

from typing import Any

from ..artifacts.artifact import Artifact, find_model, generates
from ..artifacts.pte import find_program, read_program
from ..base.errors import problem
from ..quick_imports.command import import_quickly
from .console import Console
from .model_folder import fetch_model


def run(args: Any, console: Console) -> bool:
    path = args.artifact
    if args.revision is not None and args.model is None:
        raise problem("E0306", "--revision is for a model of the hub, and none is named", "--model org/name")
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
        from ..inputs.given import read_inputs

        inputs = None if args.inputs is None else read_inputs(args.inputs)
        quality = QualityAsked(args.text, args.max_perplexity_growth)
        model = None if args.model is None else fetch_model(args, console)
        report = check(path, model, inputs, atol=args.atol, quality=quality)
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
