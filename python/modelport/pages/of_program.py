"""The record of ExecuTorch programs: methods, kernels, delegates, memory. They keep no names of weights or modules."""

from __future__ import annotations

from pathlib import Path

from ..artifacts.pte import ProgramFile, read_program
from .of_onnx import axes_of, value_of
from .record import Part, Report, Value

_NOT_KEPT = "An ExecuTorch program keeps kernels in their order, but not the modules and lines they came from."


def program_report(path: Path) -> Report:
    if not path.is_file():
        ProgramFile(path)  # says so
    summary = read_program(path)
    files = [ProgramFile(path, name) for name in summary["methods"]]
    first = files[0] if files else None
    notes = {} if first is None else {"class": first.note("model_class"), "made of": first.note("source")}
    settings = {
        name: ", ".join(map(str, items))
        for name, items in summary["constant_methods"].items()
        if not name.startswith("modelport_")
    }
    facts = {"format": "ExecuTorch program", **{key: text for key, text in notes.items() if text}}
    facts["constants"] = f"{summary['constants']} in {summary['constant_bytes']} bytes"
    if summary["initial_bytes"]:
        facts["state"] = f"{summary['initial_bytes']} bytes to begin with"
    if summary["external"]:
        facts["beside it"] = f"{len(summary['external'])} weights in another file"
    return Report(
        title=notes.get("class") or path.name,
        path=str(path),
        kind="ExecuTorch",
        facts=facts,
        parts=[_part(file) for file in files],
        files={path.name: path.stat().st_size},
        metadata=settings,
        whole=[str(path)],
    )


def _part(file: ProgramFile) -> Part:
    summary = file.summary["methods"][file.method]
    limits = file.limits
    tensors = all(isinstance(item, dict) for item in summary["inputs"])
    inputs = [value_of(row) for row in file.inputs] if tensors else []
    return Part(
        name=file.method,
        facts={"instructions": str(summary["instructions"]), "arena": f"{sum(summary['arenas'])} bytes"},
        inputs=inputs or [Value(f"input_{i}", "number", ()) for i, _ in enumerate(summary["inputs"])],
        outputs=[value_of(row) for row in file.outputs],
        axes=axes_of(file.limit_record or {}),
        limits=limits.words if limits else [],
        operators=dict(summary["operators"]),
        delegates=[
            {"backend": backend, "bytes": size, "nodes": nodes} for backend, size, nodes in summary["delegates"]
        ],
        missing=[_NOT_KEPT],
    )
