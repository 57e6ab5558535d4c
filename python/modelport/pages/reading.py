"""From a path to its record, whatever lies there."""

from __future__ import annotations

import os
from pathlib import Path

from ..artifacts.pte import find_program
from .of_checkpoint import checkpoint_report
from .of_onnx import onnx_report
from .of_program import program_report
from .record import Report


def read_report(path: str | os.PathLike[str]) -> Report:
    """Of an ONNX file or folder, a `.pte` program, a `.pt2` archive, the text of a graph, a checkpoint."""
    file = Path(path)
    if file.is_file() and file.suffix == ".pt2":
        from .of_graph import pt2_report

        return pt2_report(file)
    if file.is_file() and _is_graph_text(file):
        from .of_graph import text_report

        return text_report(file)
    if file.is_dir() and _is_checkpoint(file):
        return checkpoint_report(file)
    program = find_program(file)
    return onnx_report(os.fspath(path)) if program is None else program_report(program)


def _is_checkpoint(folder: Path) -> bool:
    has = {kind for kind in ("safetensors", "onnx", "pte") if any(folder.glob(f"*.{kind}"))}
    return has == {"safetensors"} and not any(folder.glob("onnx/*.onnx"))


def _is_graph_text(file: Path) -> bool:
    with file.open("rb") as opened:
        return opened.read(6) == b"graph "
