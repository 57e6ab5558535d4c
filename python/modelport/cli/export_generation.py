"""`modelport export onnx` of a model that generates: the files that do it together, checked by what they generate."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..artifacts.artifact import Artifact
from ..artifacts.staging import Staging
from ..artifacts.variants import split_name
from ..base.errors import ExportError
from ..base.printable import python_text, shell_quote
from .calibration_file import read_texts
from .companions import copy_companions
from .console import Console
from .inspect_artifact import limit_lines, linked_text, processor_lines, size_text
from .outcome import Export, Told, refuse_difference
from .quantization_arguments import Variant


def wanted(args: Any, loading: Any) -> bool:
    """A folder for a model that generates gets all that it takes. A single file, or a task without `-with-past`, is for
    the plain model, as in optimum."""
    if args.with_past:
        return True
    plain = args.out.endswith(".onnx") or args.no_dynamic_axes or not args.external_data
    if plain or (args.task is not None and not args.client):
        return False
    return loading.model_class().can_generate()


def exports(
    args: Any, console: Console, loading: Any, config: Any, staging: Staging, variants: list[Variant]
) -> Iterator[Export]:
    """The model once for each type; what is captured is the same."""
    from ..exporters.calibration import settled
    from ..generation.watching import refuse_if_it_cannot_generate

    refuse_if_it_cannot_generate(loading.model_class())
    with console.stage("load"):
        model = loading.opened()
    samples = None
    if args.calibration:
        samples = read_texts(args.calibration, loading.folder, model.config, model.main_input_name)
    captured = None
    for variant in variants:
        how = dataclasses.replace(config, quantization=variant.quantization, calibration=samples)
        if captured is None:
            parts = captured = _exported(args, console, loading, model, how)
        else:
            with console.stage("lower"):
                parts = captured.lowered_again(quantization=how.quantization, calibration=samples)
                settled(parts, lambda: model)
        total = sum(t.nbytes for part in parts.values() for t in part.captured.lazy_program.weights().values())
        with console.stage("write", staging.written, total):
            parts.write(staging.folder, variant.suffix)
            copy_companions(loading.folder, staging.folder)
        report = None
        if not args.no_check:
            with console.stage("check"):
                report = _check(args, loading, staging.folder, variant, parts)
        refuse_difference(console, report)
        if args.client:  # after the check: a client may divide the model as only it can run it
            _fit_client(args.client, loading, model, how, staging.folder, variant)
        telling = functools.partial(_told, args, parts, staging, report, variant)
        yield Export(variant, telling, model.config, model.generation_config)


def _exported(args: Any, console: Console, loading: Any, model: Any, config: Any) -> Any:
    from ..contracts import rename_parts
    from ..exporters.onnx import OnnxExporter
    from ..generation.prompts import for_generate

    with console.stage("capture"):
        loading.make_inputs(model)
        parts = OnnxExporter().export_for_generation(model, for_generate(loading.inputs), config)
        if args.client:
            rename_parts(args.client, parts)
    for part in parts.values():
        part.captured.source = loading.folder
        part.captured.origin = loading.origin() | {"generates": "yes"}
    return parts


def _fit_client(client: str, loading: Any, model: Any, config: Any, folder: Path, variant: Variant) -> None:
    from ..contracts import rewrite_parts
    from ..generation.prompts import for_generate

    copied = dataclasses.replace(config, weights="copy")  # what a client has its own way has no place in a file
    rewrite_parts(client, folder, model, for_generate(loading.inputs), copied, variant.kind)


def _check(args: Any, loading: Any, folder: Path, variant: Variant, parts: Any) -> Any:
    if any(part.quantization is not None for part in parts.values()):
        from ..checking.quality import QualityAsked, compare_quality

        asked = QualityAsked(args.text, args.max_perplexity_growth)
        return compare_quality(folder, loading.exact_model(), args.out, asked, variant.kind)
    from ..checking.generation import compare_generation, prompts_for
    from ..running import load

    model = loading.model()
    loaded = load(folder, dtype=variant.kind)
    return compare_generation(loaded, model, prompts_for(model, loading.inputs), args.atol, args.out)


def _told(args: Any, parts: Any, staging: Staging, report: Any, variant: Variant) -> Told:
    folder, target = staging.folder, staging.target
    found = sorted(path for path in folder.rglob("*.onnx*") if path.is_file())
    files = [file for file in found if split_name(file.name.partition(".onnx")[0])[1] == variant.kind]
    sizes = {str(target / file.relative_to(folder)): file.stat().st_size for file in files}
    graphs = {file.stem: Artifact(file) for file in files if file.suffix == ".onnx"}
    nodes = {name: sum(graph.summary["operators"].values()) for name, graph in graphs.items()}
    lines = [] if report is None else [str(report)]
    lines += [f"wrote {name} ({size_text(size)})" for name, size in sizes.items()]
    stay = linked_text(graphs.values()) if args.weights == "link" else ""
    lines.append(", ".join(f"{name}: {count} nodes" for name, count in nodes.items()) + stay)
    if report is None:
        lines.append("what it generates was not compared with the model")
    lines += [*processor_lines(graphs.values()), *limit_lines(graphs.values())]
    data = {
        "files": sizes,
        "nodes": nodes,
        "inputs": {name: part.input_names for name, part in parts.items()},
        "outputs": {name: part.output_names for name, part in parts.items()},
        "limits": {name: part.limits.words for name, part in parts.items()},
        "attempts": {name: part.captured.attempts for name, part in parts.items()},
        "check": None if report is None else report.to_dict(),
    }
    return Told(lines, data, f"try it: {way_to_try(folder, target, parts.model)}")


def way_to_try(folder: Path, target: Path, model: Any) -> str:
    """Something that works with what the folder has, at the place that it will have."""
    from ..running import open_any
    from ..running.prompt import reads_media, reads_text

    try:
        features = open_any(folder).features
    except ExportError:  # only the client runs it
        return f"onnxruntime_genai.Model({python_text(target)}) in Python, see docs/clients.md"
    read = model.main_input_name
    flag = "--audio FILE" if "audio_encoder" in features else "--image FILE"
    if not reads_text(folder) or (read != "input_ids" and not reads_media(folder)):
        return f"modelport.load({python_text(target)}).generate({read}) in Python"
    if read != "input_ids":
        return f"modelport run {shell_quote(target)} {'--image' if read.startswith('pixel') else '--audio'} FILE"
    media = f" {flag}" if features and reads_media(folder) else ""
    return f'modelport run {shell_quote(target)} "..."{media}'
