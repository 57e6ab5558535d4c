"""What was captured, as torch's own ExportedProgram: made when somebody looks into it, and never only to be saved."""

from __future__ import annotations

import copy
import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree as pytree

from ..artifacts.staging import Staging
from ..base import core
from ..base.structure import Flat, unflatten
from ..capturing.captured import Captured

# What torch keeps in an ExportedProgram. An object without them yet makes them when one is asked for.
_PARTS = frozenset(torch.export.ExportedProgram.__annotations__)


class ExportedProgram(torch.export.ExportedProgram):
    """An ExportedProgram of torch's like any other, which torch.export.save, torch.onnx.export, AOTInductor and
    ExecuTorch take. `save` writes the archive straight from what was captured; torch.fx nodes are made only when
    something else is asked for (`module()`, `graph_signature`, ...). It has the model's own weights, not copies."""

    captured: Captured

    def __init__(self, captured: Captured):
        self.captured = captured

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes the `.pt2` archive; what was at `path` stays whole if that fails."""
        with Staging(path, is_file=True) as staging:
            write_pt2(self.captured, staging.folder / staging.name)
            staging.commit()
        return Path(path)

    def __getattr__(self, name: str) -> Any:
        if name not in _PARTS or "captured" not in vars(self):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        for part, value in vars(_torch_program(self.captured)).items():
            self.__dict__.setdefault(part, value)
        return self.__dict__[name]

    def __deepcopy__(self, memo: dict[int, Any]) -> ExportedProgram:
        """The graph is copied; what was captured never changes."""
        copied = copy.copy(self)
        memo[id(self)] = copied
        parts = {name: value for name, value in vars(self).items() if name != "captured"}
        copied.__dict__.update(copy.deepcopy(parts, memo))
        return copied


def _torch_program(captured: Captured) -> torch.export.ExportedProgram:
    # torch has no public way from the text of a program and tensors at hand, only one from a file with both.
    from torch._export.serde.serialize import SerializedArtifact, deserialize

    # The structures are those at hand: as text, numbers that are keys (of a cache's layers) would be text too.
    text, saved, constants = core.pt2_parts(captured.program, _call(captured, _A_LEAF, _A_LEAF))
    device = torch.device(_device(captured.inputs))
    program = deserialize(SerializedArtifact(text, _tensors(saved, device), _tensors(constants, device), b""))
    example = _example(captured.inputs)
    call = program.module_call_graph[0].signature
    call.in_spec, call.out_spec = pytree.tree_structure(example), captured.outputs.spec
    program.example_inputs = example
    # Those that a run writes to are the program's own: the model keeps what it has.
    written = set(program.graph_signature.buffers_to_mutate.values())
    for tensors in (program.state_dict, program.constants):
        tensors.update({name: tensor.clone() for name, tensor in tensors.items() if name in written})
    return program


def _tensors(weights: Mapping[str, tuple[torch.Tensor, bool]], device: torch.device) -> dict[str, torch.Tensor]:
    """The weights where the program computes: constants of the graph, which the capture made, are not there yet."""

    def of_its_kind(tensor: torch.Tensor, is_parameter: bool) -> torch.Tensor:
        tensor = tensor if tensor.is_meta or tensor.device == device else tensor.to(device)
        if is_parameter and not isinstance(tensor, torch.nn.Parameter):
            return torch.nn.Parameter(tensor, requires_grad=False)
        return tensor

    return {name: of_its_kind(*weight) for name, weight in weights.items()}


def write_pt2(captured: Captured, path: str | os.PathLike[str]) -> None:
    inputs = pytree.treespec_dumps(pytree.tree_structure(_example(captured.inputs)))
    call = _call(captured, inputs, pytree.treespec_dumps(captured.outputs.spec))
    core.write_pt2(captured.program, os.fspath(path), call | {"example": _pickled_example(captured.inputs)})


_A_LEAF = pytree.treespec_dumps(pytree.tree_structure(0))


def _call(captured: Captured, input_structure: str, output_structure: str) -> dict[str, Any]:
    """How the program is called, as the writer takes it."""
    inputs, outputs = captured.inputs, captured.outputs
    return {
        "inputs": [(n, isinstance(v, torch.Tensor), v) for n, v in zip(inputs.names, inputs.leaves, strict=True)],
        "outputs": [(n, i, v) for n, i, v in zip(outputs.names, captured.in_graph, outputs.leaves, strict=True)],
        "given": list(outputs.given.items()),
        "arguments": list(_example(inputs)[1]),  # also those without a tensor, such as an empty cache
        "input_structure": input_structure,
        "output_structure": output_structure,
        "torch_version": torch.__version__,
        "device": _device(inputs),
    }


def _example(inputs: Flat) -> tuple[tuple[()], dict[str, Any]]:
    """The call that was captured: no positional arguments, keywords as they were."""
    return (), unflatten(inputs.leaves, inputs.spec)


def _device(inputs: Flat) -> str:
    """Where the inputs are; the program computes there."""
    devices = {str(tensor.device) for tensor in inputs.tensors().values()}
    return next(iter(sorted(devices - {"cpu"})), "cpu")


_PLAIN = (torch.Tensor, bool, int, float, str, type(None))


def _pickled_example(inputs: Flat) -> bytes:
    """For the archive, where AOTInductor looks for it. An example with objects in it (a cache) stays out: whoever opens
    a file should not have to unpickle classes."""
    example = _example(inputs)
    if not _is_plain(example):
        return b""
    file = io.BytesIO()
    torch.save(example, file)
    return file.getvalue()


def _is_plain(value: Any) -> bool:
    if type(value) in (list, tuple):
        return all(map(_is_plain, value))
    if type(value) is dict:
        return all(map(_is_plain, value.values()))
    return type(value) in _PLAIN
