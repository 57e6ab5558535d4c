"""`modelport export executorch` of a model that generates: one program, checked by what it generates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..artifacts.staging import Staging
from ..base.printable import python_text, shell_quote
from .companions import copy_companions
from .console import Console
from .inspect_artifact import size_text
from .outcome import refuse_unless_fewer_bits


def run(args: Any, console: Console, loading: Any, config: Any, staging: Staging) -> bool:
    from ..exporters.executorch_generation import export_for_generation
    from ..generation.prompts import for_generate

    with console.stage("load"):
        model = loading.opened()
    with console.stage("capture"):
        args.batch = 1  # the program reads one text at a time
        loading.make_inputs(model)
        parts = export_for_generation(model, for_generate(loading.inputs), config)
    for part in parts.values():
        captured: Any = part.captured
        captured.source, captured.origin = loading.folder, loading.origin()
    for note in parts.notes:
        console.note(note)
    total = sum(t.nbytes for part in parts.values() for t in part.captured.lazy_program.weights().values())
    program = staging.folder / staging.name
    with console.stage("write", staging.written, total):
        parts.write(program)
        if not staging.is_file:
            parts.write_configs(staging.folder)
            copy_companions(loading.folder, staging.folder)
    report = None
    if not args.no_check:
        with console.stage("check"):
            report = _check(args, loading, program)
    refuse_unless_fewer_bits(console, report, args.atol, config)
    size = program.stat().st_size
    loading.checkpoint.refuse_changed()
    staging.commit()
    _tell(console, parts, staging, size, report)
    return True


def _check(args: Any, loading: Any, program: Path) -> Any:
    from ..checking.program_generation import check_program

    model = loading.model()
    return check_program(program, model, loading.inputs, atol=args.atol, name=args.out, config_in=loading.folder)


def _tell(console: Console, parts: Any, staging: Staging, size: int, report: Any) -> None:
    lines = [] if report is None else [str(report)]
    file = staging.target / staging.name
    lines.append(f"wrote {file} ({size_text(size)}), {next(iter(parts.values())).config.recipe}")
    for name, method in parts.written.items():
        memory = f"arena {size_text(method['arena_bytes'])}, cache {size_text(method['state_bytes'])}"
        lines.append(f"{name}: {method['instructions']} instructions, {memory}")
    if report is None:
        lines.append("what it generates was not compared with the model")
    for name, part in parts.items():
        whose = f" of {name}" if len(parts) > 1 else ""
        lines += [f"limit{whose}: {words}" for words in part.limits.words]
    tokenizer = file.parent / "tokenizer.json"
    way = f'modelport run {shell_quote(staging.target)} "..."'
    if not tokenizer.exists():
        way = f"modelport.load({python_text(staging.target)}).generate(...) in Python"
    lines.append(f"{console.timings()}\ntry it: {way}")
    data = {
        "ok": True,
        "files": {str(file): size},
        "recipe": next(iter(parts.values())).config.recipe,
        "methods": parts.written,
        "constant_methods": parts.constant_methods,
        "inputs": {name: part.input_names for name, part in parts.items()},
        "outputs": {name: part.output_names for name, part in parts.items()},
        "limits": {name: part.limits.words for name, part in parts.items()},
        **console.steps(),
        "attempts": {name: part.captured.attempts for name, part in parts.items()},
        "notes": console.notes,
        "check": None if report is None else report.to_dict(),
    }
    console.result("\n".join(lines), data)
