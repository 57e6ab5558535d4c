"""`modelport export onnx`: from a checkpoint folder to a checked artifact."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..artifact import Artifact
from .console import Console
from .inspect_artifact import size_text
from .interrupt import interruptible
from .staging import Staging

# What runtimes and tokenizers look for beside a model.
_COMPANIONS = (
    "config.json", "generation_config.json", "preprocessor_config.json", "processor_config.json",
    "image_processor_config.json", "video_preprocessor_config.json", "feature_extractor_config.json",
    "tokenizer*", "special_tokens_map.json", "added_tokens.json", "vocab.*", "merges.txt", "*.spm", "*.model",
    "*.tiktoken", "chat_template*", "spiece.*", "sentencepiece.*",
)  # fmt: skip


def run(args: Any, console: Console) -> bool:
    folder = Path(args.model)
    for flag in ("device", "framework", "monolith", "no_post_process"):
        if getattr(args, flag):
            console.note(f"--{flag.replace('_', '-')} makes no difference here")
    staging = Staging(args.out)
    with _warnings_as_notes(console), staging, interruptible(staging.discard):
        program, loading = _program(args, console, folder)
        total = sum(t.nbytes for t in program.captured.unread_program.weights().values())
        with console.stage("write", staging.written, total):
            program.save(staging.folder / staging.name)
            if not staging.single:
                _copy_companions(folder, staging.folder)
        _note_infinities(console, program)
        report = None
        if not args.no_check:
            with console.stage("check"):
                report = _check(args, program, staging, loading)
        if report is not None and not report.ok:
            if not console.quiet and not console.as_json:
                print(report)
            raise report.error()
        files = _commit(args, program, staging)
    _tell(console, args, program, files, report)
    return True


@contextmanager
def _warnings_as_notes(console: Console) -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.filterwarnings("always", module="modelport")
        warnings.filterwarnings("always", message=".*became infinite|.*the weights are|.*conditions on sizes")
        warnings.showwarning = lambda message, *_args, **_more: console.note(str(message))
        yield


def _program(args: Any, console: Console, folder: Path) -> tuple[Any, Any]:
    """The lowered program, and the loading that it comes from."""
    with console.stage("import"):
        from ..checking.session import needs_onnxruntime
        from ..exporters.configs import OnnxConfig
        from ..exporters.onnx import OnnxProgram, checked_opset
        from .loading import Loading

        opset = checked_opset(args.opset)
        if not args.no_check:
            needs_onnxruntime()
        loading = Loading(args, folder)
    config = OnnxConfig(
        dynamic=not args.no_dynamic_axes,
        opset_version=opset,
        external_data=args.external_data,
        weights=args.weights,
        shard_bytes=args.shard_size,
    )
    with console.stage("capture"):
        captured = loading.capture()
    with console.stage("lower"):
        program = OnnxProgram(captured, config, opset)
    return program, loading


def _note_infinities(console: Console, program: Any) -> None:
    """Weights that do not fit into fp16: the model has the same infinities there, so that a check does not see them."""
    import torch

    weights = program.captured.unread_program.weights()
    halves = {name: w for name, w in weights.items() if w.dtype == torch.float16}
    lost = [name for name, weight in halves.items() if bool(weight.isinf().any())]
    if lost:
        more = f" and {len(lost) - 4} more" if len(lost) > 4 else ""
        console.note(f"values too large for fp16 are infinite in {', '.join(lost[:4])}{more}; --dtype bf16 has room")


def _check(args: Any, program: Any, staging: Staging, loading: Any) -> Any:
    from ..checking.compare import Request, compare

    artifact = Artifact(staging.folder / staging.name, nodes=True)
    return compare(Request(artifact, loading.model(), loading.inputs, args.atol, program), args.out)


def _copy_companions(source: Path, target: Path) -> None:
    for pattern in _COMPANIONS:
        for file in sorted(source.glob(pattern)):
            if file.is_file() and not (target / file.name).exists():
                shutil.copyfile(file, target / file.name)


def _commit(args: Any, program: Any, staging: Staging) -> list[Path]:
    if args.weights == "link" and not staging.beside:
        # Paths into the checkpoint are relative, and this folder was not where the file goes.
        program.save(staging.target / staging.name)
        return list(program.files)
    names = [file.name for file in program.files]
    staging.commit()
    return [staging.target / name for name in names]


def _tell(console: Console, args: Any, program: Any, files: list[Path], report: Any) -> None:
    nodes = sum(Artifact(files[0]).summary["operators"].values())
    sizes = {str(file): file.stat().st_size for file in files}
    lines = [] if report is None else [str(report)]
    written = " + ".join(f"{name} ({size_text(size)})" for name, size in sizes.items())
    stay = "; the weights stay in the files of the checkpoint" if args.weights == "link" else ""
    lines.append(f"wrote {written}, opset {program.opset}, {nodes} nodes{stay}")
    if report is None:
        lines.append("the values were not compared with the model's")
    lines.append(console.timings())
    data = {
        "ok": True,
        "files": sizes,
        "opset": program.opset,
        "nodes": nodes,
        "inputs": program.input_names,
        "outputs": program.output_names,
        "seconds": {name: round(seconds, 4) for name, seconds in console.seconds.items()},
        "notes": console.notes,
        "check": None if report is None else report.to_dict(),
    }
    console.result("\n".join(lines), data)
