"""`modelport export onnx` of a model that generates: the files that do it together, checked by what they generate."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..artifact import Artifact
from .companions import copy_companions, write_contract
from .console import Console
from .inspect_artifact import size_text
from .staging import Staging


def wanted(args: Any, loading: Any) -> bool:
    """A folder for a model that generates gets all that it takes. A single file, weights that stay where they are, or a
    task without `-with-past` is for the plain model, as in optimum."""
    if args.with_past:
        return True
    plain = args.out.endswith(".onnx") or args.weights == "link" or args.no_dynamic_axes or not args.external_data
    if plain or (args.task is not None and not args.client):
        return False
    return loading.model_class().can_generate()


def run(args: Any, console: Console, loading: Any, config: Any, staging: Staging) -> bool:
    from .export_onnx import refuse_difference

    with console.stage("load"):
        model = loading.model()
        loading.warn_of_overflows()
    parts = _exported(console, loading, model, config)
    total = sum(t.nbytes for part in parts.values() for t in part.captured.unread_program.weights().values())
    with console.stage("write", staging.written, total):
        parts.save(staging.folder)
        copy_companions(loading.folder, staging.folder)
    report = None
    if not args.no_check:
        with console.stage("check"):
            report = _check(args, model, loading.inputs, staging.folder)
    refuse_difference(console, report)
    if args.client:  # after the check: a client may divide the model as only it can run it
        _fit_client(args.client, console, loading, config, staging.folder)
    staging.commit()
    _tell(console, parts, staging.target, report)
    return True


def _exported(console: Console, loading: Any, model: Any, config: Any) -> Any:
    from ..exporters.onnx import OnnxExporter
    from ..generation.prompts import for_generate

    with console.stage("capture"):
        loading.make_inputs(model)
        parts = OnnxExporter().export_for_generation(model, for_generate(loading.inputs), config)
    for part in parts.values():
        part.captured.source = loading.folder
        part.captured.origin = loading.origin() | {"generates": "yes"}
    return parts


def _fit_client(client: str, console: Console, loading: Any, config: Any, folder: Path) -> None:
    from ..contracts import rewrite_parts
    from ..generation.prompts import for_generate

    model = loading.model()
    rewrite_parts(client, folder, model, for_generate(loading.inputs), config)
    write_contract(client, console, folder, model.config, model.generation_config)


def _check(args: Any, model: Any, inputs: Any, folder: Path) -> Any:
    from ..checking.generation import compare_generation, prompts_for
    from ..running import load

    return compare_generation(load(folder), model, prompts_for(model, inputs), args.atol, args.out)


def _tell(console: Console, parts: Any, folder: Path, report: Any) -> None:
    files = sorted(path for path in folder.rglob("*.onnx*") if path.is_file())
    sizes = {str(file): file.stat().st_size for file in files}
    nodes = {f.stem: sum(Artifact(f).summary["operators"].values()) for f in files if f.suffix == ".onnx"}
    lines = [] if report is None else [str(report)]
    lines += [f"wrote {name} ({size_text(size)})" for name, size in sizes.items()]
    lines.append(", ".join(f"{name}: {count} nodes" for name, count in nodes.items()))
    if report is None:
        lines.append("what it generates was not compared with the model")
    lines.append(f'{console.timings()}\ntry it: modelport run {folder} "..."')
    data = {
        "ok": True,
        "files": sizes,
        "nodes": nodes,
        "inputs": {name: part.input_names for name, part in parts.items()},
        "outputs": {name: part.output_names for name, part in parts.items()},
        "seconds": {name: round(seconds, 4) for name, seconds in console.seconds.items()},
        "notes": console.notes,
        "check": None if report is None else report.to_dict(),
    }
    console.result("\n".join(lines), data)
