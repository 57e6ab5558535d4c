"""`modelport capture`: the graph of a model, without its weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..base.errors import problem
from ..quick_imports.command import import_quickly
from .console import Console, note_code
from .export_onnx import warnings_as_notes
from .inspect_artifact import size_text
from .model_folder import with_headers


def run(args: Any, console: Console) -> bool:
    args.weights = "copy"
    with warnings_as_notes(console), with_headers(args, console) as folder:
        with console.stage("import"):
            if not args.trust_remote_code:  # which may use whatever it likes
                import_quickly()
            from .sentence_loading import loading_for

            if args.trust_remote_code:
                note_code(console, folder)
            loading = loading_for(args, folder)
        with console.stage("capture"):
            captured = loading.capture()
        if args.out is not None:
            _write(Path(args.out), str(captured))
        _tell(args, console, loading, captured)
    return True


def _write(path: Path, text: str) -> None:
    if path.is_dir():
        raise problem("E0105", f"{path} is a folder, and a graph is one file", f"name a file: {path / 'graph.txt'}")
    path.write_text(text, encoding="utf-8")


def _tell(args: Any, console: Console, loading: Any, captured: Any) -> None:
    weights = captured.lazy_program.weights().values()
    count, total = len(weights), sum(t.nbytes for t in weights)
    name = loading.model_class().__name__
    lines = [f"{name} of {args.model}: {count} weights, {size_text(total)}", captured.report()]
    if args.out is not None:
        lines.append(f"wrote {args.out}")
    lines.append(console.timings())
    data = {
        "ok": True,
        "class": name,
        "nodes": captured.lazy_program.node_count(),
        "inputs": [
            {"name": name, "dtype": dtype, "shape": sizes} for name, dtype, sizes in captured.lazy_program.inputs()
        ],
        "outputs": captured.output_names,
        "weights": {"count": count, "bytes": total},
        "example": captured.example,
        "guards": captured.guards,
        "assumptions": captured.assumptions,
        "file": args.out,
        "seconds": {name: round(seconds, 4) for name, seconds in console.seconds.items()},
        "notes": console.notes,
    }
    console.result("\n".join(lines), data)
