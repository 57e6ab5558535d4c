"""`modelport export pt2`: from a checkpoint folder to a checked archive for torch.export."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..artifacts.staging import Staging
from ..quick_imports.command import import_quickly
from .companions import copy_companions
from .console import Console, note_code
from .export_onnx import warnings_as_notes
from .inspect_artifact import size_text
from .interrupt import interruptible
from .model_folder import fetch_model

MODEL_FILE = "model.pt2"


def run(args: Any, console: Console) -> bool:
    folder = fetch_model(args, console)
    staging = Staging(args.out, model=MODEL_FILE)
    with warnings_as_notes(console), staging, interruptible(staging.discard):
        loading = _loading(args, console, folder)
        with console.stage("capture"):
            captured = loading.capture()
        file = staging.folder / staging.name
        with console.stage("write", staging.written, _bytes(captured)):
            from ..exporters.exported_program import write_pt2

            write_pt2(captured, file)
            if not staging.is_file:
                copy_companions(folder, staging.folder)
        check = None
        if not args.no_check:
            with console.stage("check"):
                check = _check(args, loading, file)
        size = file.stat().st_size
        loading.checkpoint.refuse_changed()
        staging.commit()
    _tell(console, captured, (str(staging.target / staging.name), size), check)
    return True


def _bytes(captured: Any) -> int:
    return sum(tensor.nbytes for tensor in captured.lazy_program.weights().values())


def _loading(args: Any, console: Console, folder: Path) -> Any:
    with console.stage("import"):
        if not args.trust_remote_code:  # which may use whatever it likes
            import_quickly()
        from .loading import Loading

        if args.trust_remote_code:
            note_code(console, folder)
        return Loading(args, folder)


def _check(args: Any, loading: Any, file: Path) -> dict[str, Any]:
    """What was written, read again and run beside the model; raises where values differ."""
    from ..exporters.dynamo import load_pt2

    found = load_pt2(file).check(loading.model(), loading.inputs, atol=args.atol)
    rows = [
        {
            "size": "example",
            "axes": {},
            "output": row.name,
            "absolute": row.absolute,
            "relative": row.relative,
            "ok": True,
        }
        for row in found
    ]
    return {"artifact": args.out, "atol": args.atol, "rows": rows, "skipped": [], "first": None, "ok": True}


def _tell(console: Console, captured: Any, file: tuple[str, int], check: dict[str, Any] | None) -> None:
    nodes = captured.lazy_program.node_count()
    data = {
        "ok": True,
        "files": dict([file]),
        "nodes": nodes,
        "inputs": [name for name, _, _ in captured.lazy_program.inputs()],
        "outputs": captured.output_names,
        **console.steps(),
        "attempts": captured.attempts,
        "notes": console.notes,
        "check": check,
    }
    not_compared = "the values were not compared with the model's"
    checked = not_compared if check is None else "at the size of the example the values are those of the model"
    console.result(f"wrote {file[0]} ({size_text(file[1])}), {nodes} nodes\n{checked}\n{console.timings()}", data)
