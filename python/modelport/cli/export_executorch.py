"""`modelport export executorch`: from a checkpoint folder to a checked `.pte` program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..artifacts.pte import ProgramFile
from ..artifacts.staging import Staging
from ..base.errors import problem
from ..quick_imports.command import import_quickly
from . import export_executorch_generation
from .companions import copy_companions
from .console import Console, note_code
from .executorch_arguments import IN_FEWER_BITS
from .export_onnx import warnings_as_notes
from .inspect_artifact import size_text
from .interrupt import interruptible
from .model_arguments import take_paths
from .model_folder import fetch_model
from .outcome import refuse_unless_fewer_bits

MODEL_FILE = "model.pte"


def prepare(args: Any) -> None:
    """What belongs together among the arguments."""
    take_paths(args, "modelport export executorch MODEL OUT")
    args.weights = "copy"
    if args.no_dynamic_axes and args.dims:
        what = "--disable_dynamic_shapes leaves no axis that --dims could bound"
        raise problem("E0306", what, "leave one of them out")


def run(args: Any, console: Console) -> bool:
    folder = fetch_model(args, console)
    staging = Staging(args.out, model=MODEL_FILE)
    with warnings_as_notes(console), staging, interruptible(staging.discard):
        loading, config = _loading(args, console, folder)
        if loading.model_class().can_generate():
            return export_executorch_generation.run(args, console, loading, config, staging)
        _refuse_flags_of_generation(args)
        if config.compiled_by_others:
            return _run_compiler(console, loading, config, staging)
        program = _program(console, loading, config.without_encoder())
        for note in program.notes:
            console.note(note)
        total = sum(t.nbytes for t in program.captured.lazy_program.weights().values())
        with console.stage("write", staging.written, total):
            program.write(staging.folder / staging.name)
            if not staging.is_file:
                copy_companions(folder, staging.folder)
        report = None
        if not args.no_check:
            with console.stage("check"):
                report = _check(args, program, staging, loading)
        refuse_unless_fewer_bits(console, report, args.atol, config)
        size = (staging.folder / staging.name).stat().st_size
        loading.checkpoint.refuse_changed()
        staging.commit()
    _tell(console, program, {str(staging.target / staging.name): size}, report)
    return True


def _refuse_flags_of_generation(args: Any) -> None:
    given = [name for name in ("use_custom_sdpa", "use_custom_kv_cache") if getattr(args, name)]
    if given:
        raise problem("E0306", f"--{given[0]} is for models that generate", "leave it out")
    if args.no_dynamic_axes and args.max_seq_len:
        what = "--disable_dynamic_shapes leaves no axis that --max_seq_len could bound"
        raise problem("E0306", what, "leave one of them out")


def _loading(args: Any, console: Console, folder: Path) -> tuple[Any, Any]:
    """The checkpoint as the arguments want it, and how it is to be written."""
    from ..exporters.configs import ExecutorchConfig

    config = ExecutorchConfig(
        dynamic=not args.no_dynamic_axes,
        join_lists=args.join_lists,
        recipe=args.recipe,
        dims=dict(args.dims) or None,
        max_seq_len=args.max_seq_len,
        checks_as_outputs=args.checks_as_outputs,
        use_custom_sdpa=args.use_custom_sdpa,
        use_custom_kv_cache=args.use_custom_kv_cache,
        disable_dynamic_shapes=args.no_dynamic_axes,
        image_size=args.image_size,
        **{name: getattr(args, name) for name in IN_FEWER_BITS},
    )
    with console.stage("import"):
        # Code in the checkpoint, and compilers, may use whatever they like.
        if not args.trust_remote_code and not config.compiled_by_others:
            import_quickly()
        from ..runtimes.executorch import runtime
        from ..runtimes.executorch_compilers import tools_for
        from .sentence_loading import loading_for

        if config.compiled_by_others:
            tools_for(str(config.recipe))
        elif not args.no_check:
            runtime()
        if args.trust_remote_code:
            note_code(console, folder)
        _take_type_of_backend(args, console, config, folder)
        loading = loading_for(args, folder)
    return loading, config


def _take_type_of_backend(args: Any, console: Console, config: Any, folder: Path) -> None:
    from ..exporters.executorch_generation import own_dtype

    own = own_dtype(folder)
    wanted = config.for_type(own).dtype
    if args.dtype is None and wanted is not None:
        args.dtype = wanted
        console.note(f"the model is exported in {args.dtype}, the type that XNNPACK computes in, not in {own}")


def _program(console: Console, loading: Any, config: Any) -> Any:
    from ..exporters.executorch import ExecutorchProgram

    with console.stage("capture"):
        captured = loading.capture()
    with console.stage("lower"):
        return ExecutorchProgram(captured, config, loading.written)


def _run_compiler(console: Console, loading: Any, config: Any, staging: Staging) -> bool:
    """For a backend whose own tools compile for it; only they know what its values are."""
    from ..exporters.executorch_backends import CompiledProgram

    with console.stage("capture"):
        captured = loading.capture()
    program = CompiledProgram(captured, config.without_encoder())
    with console.stage("compile"):
        program.write(staging.folder / staging.name)
    if not staging.is_file:
        copy_companions(loading.folder, staging.folder)
    for note in program.notes:
        console.note(note)
    file, size = staging.target / staging.name, (staging.folder / staging.name).stat().st_size
    loading.checkpoint.refuse_changed()
    staging.commit()
    data = {"ok": True, "files": {str(file): size}, "recipe": config.recipe, **console.steps(), "notes": console.notes}
    console.result(f"wrote {file} ({size_text(size)}), {config.recipe}\n{console.timings()}", data)
    return True


def _check(args: Any, program: Any, staging: Staging, loading: Any) -> Any:
    from ..checking.compare import Request, compare

    artifact: Any = ProgramFile(staging.folder / staging.name)
    return compare(Request(artifact, loading.model(), loading.inputs, args.atol, program), args.out)


def _tell(console: Console, program: Any, sizes: dict[str, int], report: Any) -> None:
    lines = [] if report is None else [str(report)]
    method = program.written["forward"]
    written = " + ".join(f"{name} ({size_text(size)})" for name, size in sizes.items())
    arena = size_text(method["arena_bytes"])
    lines.append(f"wrote {written}, {program.config.recipe}, {method['instructions']} instructions, arena {arena}")
    if report is None:
        lines.append("the values were not compared with the model's")
    lines += [f"limit: {words}" for words in program.limits.words]
    lines.append(console.timings())
    data = {
        "ok": True,
        "files": sizes,
        "recipe": program.config.recipe,
        "methods": program.written,
        "inputs": program.input_names,
        "outputs": program.output_names,
        "limits": program.limits.words,
        **console.steps(),
        "attempts": program.captured.attempts,
        "notes": console.notes,
        "check": None if report is None else report.to_dict(),
    }
    console.result("\n".join(lines), data)
