"""`modelport export openvino`: from a checkpoint folder to a checked folder for OpenVINO and optimum-intel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..artifacts.ir import MODEL_FILE, IrFile, find_parts
from ..artifacts.staging import Staging
from ..quick_imports.command import import_quickly
from .companions import copy_companions
from .console import Console, note_code
from .export_generation import wanted, way_to_try
from .export_onnx import warnings_as_notes
from .inspect_artifact import size_text
from .interrupt import interruptible
from .model_folder import fetch_model
from .outcome import Told, refuse_difference, tell


def run(args: Any, console: Console) -> bool:
    folder = fetch_model(args, console)
    staging = Staging(args.out, is_file=False, model=MODEL_FILE)
    with warnings_as_notes(console), staging, interruptible(staging.discard):
        loading, config = _loading(args, console, folder)
        exported = _generating if wanted(args, loading) else _plain
        report, parts = exported(args, console, loading, config, staging)
        told = _told(args, staging, report, parts)
        loading.checkpoint.refuse_changed()
        staging.commit()
    tell(console, {args.dtype: told})
    return True


def _loading(args: Any, console: Console, folder: Path) -> tuple[Any, Any]:
    with console.stage("import"):
        if not args.trust_remote_code:  # which may use whatever it likes
            import_quickly()
        from ..exporters.configs import OpenVINOConfig
        from ..runtimes.openvino import needs_openvino
        from ..weights.checkpoint import written_dtype
        from .sentence_loading import loading_for

        needs_openvino()
        if args.dtype is None and written_dtype(folder) == "bfloat16":
            args.dtype = "fp32"
            console.note("the model computes in fp32, with its weights in bf16; --dtype bf16 computes in bf16")
        if args.trust_remote_code:
            note_code(console, folder)
        stateful = not args.disable_stateful
        axes = {"dynamic": not args.no_dynamic_axes, "join_lists": args.join_lists}
        config = OpenVINOConfig(**axes, dtype=args.dtype, stateful=stateful)
        return loading_for(args, folder), config


def _plain(args: Any, console: Console, loading: Any, config: Any, staging: Staging) -> tuple[Any, Any]:
    """A model of one file."""
    from ..exporters.onnx import DEFAULT_OPSET
    from ..exporters.onnx_program import OnnxProgram
    from ..exporters.openvino import OpenVINOProgram, onnx_config

    with console.stage("capture"):
        captured = loading.capture()
    with console.stage("lower"):
        program = OpenVINOProgram(OnnxProgram(captured, onnx_config(config), DEFAULT_OPSET), config)
    with console.stage("write", staging.written, _bytes([program])):
        program.write(staging.folder / MODEL_FILE)
        copy_companions(loading.folder, staging.folder)
    report = None
    if not args.no_check:
        with console.stage("check"):
            from ..checking.compare import Request, compare

            artifact = IrFile(staging.folder / MODEL_FILE)
            report = compare(Request(artifact, loading.model(), loading.inputs, args.atol, program), args.out)
    refuse_difference(console, report)
    return report, None


def _generating(args: Any, console: Console, loading: Any, config: Any, staging: Staging) -> tuple[Any, Any]:
    """The parts of a model that generates."""
    from ..exporters.openvino import OpenVINOExporter
    from ..generation.prompts import for_generate
    from ..generation.watching import refuse_if_it_cannot_generate

    refuse_if_it_cannot_generate(loading.model_class())
    with console.stage("load"):
        model = loading.opened()
    with console.stage("capture"):
        loading.make_inputs(model)
        parts = OpenVINOExporter().export_for_generation(model, for_generate(loading.inputs), config)
    for part in parts.values():
        part.captured.source = loading.folder
        part.captured.origin = loading.origin() | {"generates": "yes"}
    with console.stage("write", staging.written, _bytes(parts.values())):
        parts.write(staging.folder)
        copy_companions(loading.folder, staging.folder)
    report = None
    if not args.no_check:
        with console.stage("check"):
            from ..checking.generation import compare_generation, prompts_for
            from ..running import load

            whole = loading.model()
            prompts = prompts_for(whole, loading.inputs)
            report = compare_generation(load(staging.folder), whole, prompts, args.atol, args.out)
    refuse_difference(console, report)
    return report, parts


def _bytes(programs: Any) -> int:
    """Weights are written twice: for OpenVINO's reader, and by it."""
    return 2 * sum(t.nbytes for program in programs for t in program.captured.lazy_program.weights().values())


def _told(args: Any, staging: Staging, report: Any, parts: Any) -> Told:
    found = {part: IrFile(file) for part, file in find_parts(staging.folder).items()}
    files = [file for one in found.values() for file in (one.path, one.weights) if file.is_file()]
    sizes = {str(staging.target / file.name): file.stat().st_size for file in files}
    nodes = {one.path.stem: sum(one.summary["operators"].values()) for one in found.values()}
    lines = [] if report is None else [str(report)]
    lines += [f"wrote {name} ({size_text(size)})" for name, size in sizes.items()]
    lines.append(", ".join(f"{name}: {count} operators" for name, count in nodes.items()))
    if report is None:
        lines.append("the values were not compared with the model's")
    words = {name: one.limits.words if one.limits else [] for name, one in found.items()}
    lines += [f"limit: {limit}" for name in words for limit in words[name]]
    data = {
        "files": sizes,
        "nodes": nodes,
        "inputs": {name: [row["name"] for row in one.inputs] for name, one in found.items()},
        "outputs": {name: [row["name"] for row in one.outputs] for name, one in found.items()},
        "limits": words,
        "check": None if report is None else report.to_dict(),
    }
    last = "" if parts is None else f"try it: {way_to_try(staging.folder, staging.target, parts.model)}"
    return Told(lines, data, last)
