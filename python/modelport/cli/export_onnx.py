"""`modelport export onnx`: from a checkpoint folder to a checked artifact."""

from __future__ import annotations

import argparse
import dataclasses
import functools
import glob
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from ..artifacts.artifact import Artifact
from ..artifacts.staging import Staging
from ..artifacts.variants import named
from ..base.errors import problem
from ..exporters.linked import fingerprint_meanwhile
from ..exporters.scales_ahead import scales_ahead
from ..hub.files import weights_in
from ..quick_imports.command import import_quickly
from . import export_generation
from .calibration_file import read_samples
from .companions import copy_companions, write_contract
from .console import Console, note_code
from .inspect_artifact import limit_lines, linked_text, processor_lines, size_text
from .interrupt import interruptible
from .model_folder import fetch_model
from .outcome import Export, Told, refuse_difference, tell
from .quantization_arguments import Variant, by_floats


def run(args: Any, console: Console) -> bool:
    folder = fetch_model(args, console)
    for flag in ("device", "framework", "monolith", "no_post_process"):
        if getattr(args, flag):
            console.note(f"--{flag.replace('_', '-')} makes no difference here")
    if args.from_optimize:
        console.note(args.from_optimize)
    if args.weights == "link":
        fingerprint_meanwhile(folder / name for name in weights_in(folder))
    staging = Staging(args.out)
    with warnings_as_notes(console), staging, interruptible(staging.discard), _scales_ahead(folder, args.variants):
        exports: list[Export] = []
        for floats, variants in by_floats(args.variants).items():
            asked = argparse.Namespace(**vars(args) | {"dtype": floats})
            loading, config = _loading(asked, console, folder)
            if export_generation.wanted(asked, loading):
                exports += export_generation.exports(asked, console, loading, config, staging, variants)
            else:
                exports += _exports(asked, console, loading, config, staging, variants)
        if args.client:
            write_contract(args.client, console, staging.folder, exports[0].config, exports[0].generation_config)
        told = {export.variant.dtype: export.tell() for export in exports}
        loading.checkpoint.refuse_changed()
        staging.commit()
    tell(console, told)
    return True


def _scales_ahead(folder: Path, variants: list[Variant]) -> Any:
    """For the first type that is certain to be in blocks: which models have 8 bits so is known later."""
    for variant in variants:
        how = variant.quantization
        if how is not None and how["method"] == "search" and (how["bits"] == 4 or how.get("form") == "blocks"):
            return scales_ahead(folder, how, halves=variant.floats == "fp16")
    return nullcontext()


def _exports(
    args: Any, console: Console, loading: Any, config: Any, staging: Staging, variants: list[Variant]
) -> Iterator[Export]:
    """A model of one file, once for each type; the capture is the same."""
    from ..exporters.calibration import calibrated, settled
    from ..exporters.onnx_program import OnnxProgram

    if args.num_logits_to_keep:
        raise problem(
            "E0306",
            "--num-logits-to-keep is for a model that generates, in a folder with its cache",
            "leave it out",
            "name a folder as OUT, and no --task without -with-past",
        )
    with console.stage("capture"):
        captured = loading.capture()
    for variant in variants:
        with console.stage("lower"):
            lower = functools.partial(OnnxProgram, captured, opset=config.opset_version)
            program = lower(calibrated(_config_of(args, config, variant, loading), loading.inputs, lower))
            settled({"model": program}, loading.model, is_whole=True)
        file = staging.folder / (staging.name if staging.is_file else named("model", variant.suffix))
        total = sum(t.nbytes for t in program.captured.lazy_program.weights().values())
        with console.stage("write", staging.written, total):
            program.write(file)
            if not staging.is_file:
                copy_companions(loading.folder, staging.folder)
        report = None
        if not args.no_check:
            with console.stage("check"):
                report = _check(args, program, file, loading)
        refuse_difference(console, report)
        _point_from_home(args, program, staging, file)
        telling = functools.partial(_told, args, program, staging, report)
        yield Export(variant, telling, loading.config if args.client else None)


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
        from ..runtimes.sessions import needs_onnxruntime
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
        dtype=args.dtype,
        opset_version=opset,
        external_data=args.external_data,
        weights=args.weights,
        shard_bytes=args.shard_size,
        num_logits_to_keep=args.num_logits_to_keep or 0,
        last_logits=args.client == "genai" and args.num_logits_to_keep is None,  # it reads no others
        limits_in_graph=args.limits_in_graph,
        join_lists=args.join_lists,
        operators=args.operators or ("onnxruntime" if args.client == "genai" else "standard"),
        processor=args.processor,
    )


def _check(args: Any, program: Any, file: Path, loading: Any) -> Any:
    from ..checking.compare import Request, compare
    from ..checking.quality import MIN_COSINE

    floor = None
    if program.quantization is not None:
        floor = MIN_COSINE if args.min_cosine is None else args.min_cosine
    artifact = Artifact(file, nodes=True)
    request = Request(artifact, loading.model(), loading.inputs, args.atol, program, min_cosine=floor)
    return compare(request, args.out)


def _config_of(args: Any, config: Any, variant: Variant, loading: Any) -> Any:
    """As a model that does not generate is written: it reads many tokens at once, so that products are worth 8 bits."""
    how = variant.quantization
    if how is not None and how["bits"] == 8:
        how = {"form": "dynamic"} | how
    samples = read_samples(args.calibration, loading.folder, loading.inputs) if args.calibration else None
    return dataclasses.replace(config, quantization=how, calibration=samples)


def _point_from_home(args: Any, program: Any, staging: Staging, model: Path) -> None:
    """Weights that lie where the model will be need no second name there; the check needed one."""
    folder = Path(os.path.realpath(staging.target))
    if args.weights != "link" or not Path(os.path.realpath(args.model)).is_relative_to(folder):
        return
    for link in staging.folder.glob(f"{glob.escape(model.name)}_data*"):
        link.unlink()
    program.write(model, home=staging.target)


def _told(args: Any, program: Any, staging: Staging, report: Any) -> Told:
    # A client may want them in a folder below.
    files = [next(staging.folder.rglob(glob.escape(file.name))) for file in program.files]
    sizes = {str(staging.target / file.relative_to(staging.folder)): file.stat().st_size for file in files}
    graph = Artifact(files[0])
    nodes = sum(graph.summary["operators"].values())
    stay = linked_text([graph]) if args.weights == "link" else ""
    lines = [] if report is None else [str(report)]
    written = " + ".join(f"{name} ({size_text(size)})" for name, size in sizes.items())
    lines.append(f"wrote {written}, opset {program.opset}, {nodes} nodes{stay}")
    if report is None:
        lines.append("the values were not compared with the model's")
    lines += [*processor_lines([graph]), *limit_lines([graph])]
    data = {
        "files": sizes,
        "opset": program.opset,
        "nodes": nodes,
        "inputs": program.input_names,
        "outputs": program.output_names,
        "limits": program.limits.words,
        "attempts": program.captured.attempts,
        "check": None if report is None else report.to_dict(),
    }
    return Told(lines, data)
