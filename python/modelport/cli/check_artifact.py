"""`modelport check`: an artifact against its model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..artifacts import ir
from ..artifacts.artifact import Artifact, find_all_models, find_model, generates
from ..artifacts.pte import find_program, read_program
from ..artifacts.variants import types_of
from ..base.errors import problem
from ..quick_imports.command import import_quickly
from .console import Console
from .model_folder import fetch_model


def run(args: Any, console: Console) -> bool:
    path = args.artifact
    if args.revision is not None and args.model is None:
        raise problem("E0306", "--revision is for a model of the hub, and none is named", "--model org/name")
    program = find_program(path)
    types: list[str | None] = [args.dtype]
    parts = ir.find_parts(path)
    if parts:
        for part in parts.values():
            ir.IrFile(part).refuse_other_weights()  # a broken file is reported before torch is imported
    elif program is not None:
        read_program(program)  # as above
        path = program
    else:
        if args.dtype is None and Path(path).is_dir():
            types = [*types_of(find_all_models(path))]
        if not generates(path):
            for dtype in types:
                Artifact(find_model(path, dtype))  # as above
    reports = {}
    with console.stage("check"):
        import_quickly()
        from ..checking import check
        from ..checking.quality import QualityAsked
        from ..inputs.given import read_inputs

        inputs = None if args.inputs is None else read_inputs(args.inputs)
        model = None if args.model is None else fetch_model(args, console)
        quality = QualityAsked(args.text, args.max_perplexity_growth, args.min_cosine)
        for dtype in types:
            reports[dtype] = check(path, model, inputs, atol=args.atol, quality=quality, dtype=dtype)
    return _told(console, reports)


def _told(console: Console, reports: Mapping[str | None, Any]) -> bool:
    several = len(reports) > 1
    texts = [f"{dtype}:\n{report}" if several else str(report) for dtype, report in reports.items()]
    bounds = ", ".join(dict.fromkeys(report.bound for report in reports.values()))
    data = {dtype: report.to_dict() for dtype, report in reports.items()}
    ok = all(report.ok for report in reports.values())
    shown = {"ok": ok, "types": data} if several else next(iter(data.values()))
    console.result("\n".join([*texts, f"checked in {console.seconds['check']:.2f} s, {bounds}"]), shown)
    if not ok and not console.as_json:
        console.failure(next(report for report in reports.values() if not report.ok).error())
    return ok
