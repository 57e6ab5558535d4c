"""The ways to run what was captured. Each is prepared once for a program, then called like the model."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree as pytree

import modelport

from .program import FuzzProgram

Call = Callable[[dict[str, Any]], "Result"]
OPSET = 23


class Result:
    """Leaves of a result and, where the way gives it, their structure."""

    def __init__(self, leaves: list[Any], structure: str | None = None):
        self.leaves = leaves
        self.structure = structure


def structured(value: Any) -> Result:
    leaves, spec = pytree.tree_flatten(value)
    return Result(leaves, str(spec))


def by_interpreter(_program: FuzzProgram, captured: Any, _folder: Path) -> Call:
    return lambda arguments: structured(captured.run(**arguments))


def by_our_reader(_program: FuzzProgram, captured: Any, folder: Path) -> Call:
    loaded = modelport.load_pt2(_pt2(captured, folder))
    return lambda arguments: structured(loaded.run(**arguments))


def by_torch(_program: FuzzProgram, captured: Any, folder: Path) -> Call:
    module = torch.export.load(_pt2(captured, folder)).module()
    return lambda arguments: structured(module(**arguments))


def by_onnx_program(_program: FuzzProgram, captured: Any, folder: Path) -> Call:
    program = _onnx(captured, folder)
    return lambda arguments: Result(list(program(**arguments)))


def by_onnx_file(program: FuzzProgram, captured: Any, folder: Path) -> Call:
    _onnx(captured, folder).save(folder / "model.onnx")
    loaded = modelport.load(folder / "model.onnx")

    def call(arguments: dict[str, Any]) -> Result:
        """The file takes tensors by their flat names; a plain argument is worth a word only if it changed."""
        given = {}
        for name, value in arguments.items():
            if isinstance(value, tuple):
                given |= {f"{name}.{i}": part for i, part in enumerate(value)}
            elif isinstance(value, torch.Tensor) or value != program.plain.get(name):
                given[name] = value
        return Result(list(loaded(**given).values()))

    return call


WAYS: dict[str, Callable[[FuzzProgram, Any, Path], Call]] = {
    "captured.run": by_interpreter,
    "load_pt2": by_our_reader,
    "torch.export.load": by_torch,
    "OnnxProgram": by_onnx_program,
    "modelport.load": by_onnx_file,
}
OURS = [name for name in WAYS if name != "torch.export.load"]


def capture(program: FuzzProgram, model: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return modelport.capture(model, program.arguments(program.sizes, program.seed), **program.options)


def _pt2(captured: Any, folder: Path) -> Path:
    path = folder / "model.pt2"
    if not path.exists():
        modelport.ExportedProgram(captured).save(path)
    return path


def _onnx(captured: Any, _folder: Path) -> Any:
    return modelport.OnnxProgram(captured, modelport.OnnxConfig(), OPSET)
