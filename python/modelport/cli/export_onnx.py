"""`modelport export onnx`: from a checkpoint folder to a checked artifact."""

from __future__ import annotations

import dataclasses
import glob
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..artifacts.artifact import Artifact
from ..artifacts.staging import Staging
from ..base.errors import problem
from ..quick_imports.command import import_quickly
from . import export_generation
from .companions import copy_companions, write_contract
from .console import Console, note_code
from .inspect_artifact import limit_lines, linked_text, size_text
from .interrupt import interruptible
from .model_folder import fetch_model
from .outcome import refuse_difference


def run(args: Any, console: Console) -> bool:
    folder = fetch_model(args, console)
    for flag in ("device", "framework", "monolith", "no_post_process"):
        if getattr(args, flag):
            console.note(f"--{flag.replace('_', '-')} makes no difference here")
    staging = Staging(args.out)
    with warnings_as_notes(console), staging, interruptible(staging.discard):
        loading, config = _loading(args, console, folder)
        if export_generation.wanted(args, loading):
            return export_generation.run(args, console, loading, config, staging)
        if args.num_logits_to_keep:
            raise problem(
                "E0306",
                "--num-logits-to-keep is for a model that generates, in a folder with its cache",
                "leave it out",
                "name a folder as OUT, and no --task without -with-past",
            )
        program = _program(console, loading, config)
        total = sum(t.nbytes for t in program.captured.lazy_program.weights().values())
        with console.stage("write", staging.written, total):
            program.write(staging.folder / staging.name)
            if not staging.is_file:
                copy_companions(folder, staging.folder)
        report = None
        if config.quantization is not None:
            console.note("what few bits cost is measured for models that generate, into a folder")
        elif not args.no_check:
            with console.stage("check"):
                report = _check(args, program, staging, loading)
        refuse_difference(console, report)
        if args.client:
            write_contract(args.client, console, staging.folder, loading.config)
        _point_from_home(args, program, staging)
        written = _written(args, program, staging)
        loading.checkpoint.refuse_changed()
        staging.commit()
    _tell(console, program, written, report)
    return True


@contextmanager
def warnings_as_notes(console: Console) -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.filterwarnings("always", module="modelport")
        warnings.filterwarnings("always", message=".*the weights are|.*conditions on sizes")
        warnings.showwarning = lambda message, *_args, **_more: console.note(str(message))
        yield


def _loading(args: Any, console: Console, folder: Path) -> tuple[Any, Any]:
    """The checkpoint as the arguments want it, and how it is to be written."""
    with console.stage("import"):
        if not args.trust_remote_code:  # which may use whatever it likes
            import_quickly()
        from ..exporters.configs import OnnxConfig
        from ..exporters.onnx import checked_opset
        from ..runtimes.onnxruntime import needs_onnxruntime
        from .sentence_loading import loading_for

        opset = checked_opset(args.opset)
        if not args.no_check:
            needs_onnxruntime()
        if args.trust_remote_code:
            note_code(console, folder)
        loading = loading_for(args, folder)
        if args.client:
            from ..contracts import refuse_unknown

            if args.client == "transformers.js" and args.weights == "link":
                what = "transformers.js looks for weights in files with names of its own, not in the checkpoint's"
                raise problem("E0306", what, "--weights copy")
            if args.client == "transformers.js" and args.operators == "onnxruntime":
                what = "transformers.js pads prompts in front, and onnxruntime's operators for caches do not take that"
                raise problem("E0306", what, "--operators standard")
            refuse_unknown(args.client, loading.config, loading.model_class().__name__)
    return loading, OnnxConfig(
        dynamic=not args.no_dynamic_axes,
        opset_version=opset,
        external_data=args.external_data,
        weights=args.weights,
        shard_bytes=args.shard_size,
        num_logits_to_keep=args.num_logits_to_keep,
        limits_in_graph=args.limits_in_graph,
        operators=args.operators or ("onnxruntime" if args.client == "genai" else "standard"),
        quantization=args.quantization,
    )


def _program(console: Console, loading: Any, config: Any) -> Any:
    from ..exporters.onnx import OnnxProgram

    with console.stage("capture"):
        captured = loading.capture()
    with console.stage("lower"):
        return OnnxProgram(captured, config, config.opset_version)


def _check(args: Any, program: Any, staging: Staging, loading: Any) -> Any:
    from ..checking.compare import Request, compare

    artifact = Artifact(staging.folder / staging.name, nodes=True)
    return compare(Request(artifact, loading.model(), loading.inputs, args.atol, program), args.out)


def _point_from_home(args: Any, program: Any, staging: Staging) -> None:
    """Weights that lie where the model will be need no second name there; the check needed one."""
    folder = Path(os.path.realpath(staging.target))
    if args.weights != "link" or not Path(os.path.realpath(args.model)).is_relative_to(folder):
        return
    model = staging.folder / staging.name
    for link in staging.folder.glob(f"{glob.escape(model.name)}_data*"):
        link.unlink()
    program.write(model, home=staging.target)


@dataclasses.dataclass
class _Written:
    """What there is to tell, as long as it is ours: other exports may follow."""

    sizes: dict[str, int]
    nodes: int
    stay: str
    limits: list[str]


def _written(args: Any, program: Any, staging: Staging) -> _Written:
    # A client may want them in a folder below.
    files = [next(staging.folder.rglob(glob.escape(file.name))) for file in program.files]
    sizes = {str(staging.target / file.relative_to(staging.folder)): file.stat().st_size for file in files}
    graph = Artifact(files[0])
    stay = linked_text([graph]) if args.weights == "link" else ""
    return _Written(sizes, sum(graph.summary["operators"].values()), stay, limit_lines([graph]))


def _tell(console: Console, program: Any, told: _Written, report: Any) -> None:
    lines = [] if report is None else [str(report)]
    written = " + ".join(f"{name} ({size_text(size)})" for name, size in told.sizes.items())
    lines.append(f"wrote {written}, opset {program.opset}, {told.nodes} nodes{told.stay}")
    if report is None:
        lines.append("the values were not compared with the model's")
    lines += told.limits
    lines.append(console.timings())
    data = {
        "ok": True,
        "files": told.sizes,
        "opset": program.opset,
        "nodes": told.nodes,
        "inputs": program.input_names,
        "outputs": program.output_names,
        "limits": program.limits.words,
        **console.steps(),
        "attempts": program.captured.attempts,
        "notes": console.notes,
        "check": None if report is None else report.to_dict(),
    }
    console.result("\n".join(lines), data)
