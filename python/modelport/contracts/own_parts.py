"""Graphs that a client divides otherwise than the default layout: exported, compared with PyTorch, written."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping
from typing import Any

import torch

from ..base.errors import problem
from ..base.structure import flatten
from ..exporters.base import config_of_part
from ..exporters.configs import OnnxConfig
from ..exporters.onnx import OnnxExporter
from ..values.tolerance import same_values
from .layout import Layout


@dataclasses.dataclass
class OwnPart:
    """A module with an example call, and the axes that may change, by the names of the flat inputs."""

    module: torch.nn.Module
    inputs: dict[str, Any]
    axes: dict[str, dict[int, Any]]


def write_parts(layout: Layout, parts: Mapping[str, OwnPart], config: Any = None) -> None:
    """Takes the place of the graphs of these names."""
    write_programs(layout, {name: _exported(name, part, config_of_part(config, name)) for name, part in parts.items()})


def write_programs(layout: Layout, programs: Mapping[str, Any]) -> None:
    for name, program in programs.items():
        graph = layout.graphs[name]
        before = {layout.folder / weights for weights in graph.weight_files}
        program.captured.origin = graph.origin | (getattr(program.captured, "origin", None) or {})
        program.write(graph.file)
        for stale in before - set(program.files):
            stale.unlink()
    vars(layout).pop("graphs", None)  # they are read again


def renamed(program: Any, names: Mapping[str, str]) -> Any:
    """The same program, in which these inputs and outputs have other names."""
    asked = program.renamed
    before = {now: ours for ours, now in asked.items()}
    asked = asked | {before.get(now, now): name for now, name in names.items()}
    return program.lowered_again(names=asked)


def _exported(name: str, part: OwnPart, config: Any) -> Any:
    settings = copy.copy(OnnxConfig.given(config))
    settings.dynamic, settings.dynamic_shapes = True, part.axes
    if settings.quantization is not None:
        settings.quantization = settings.quantization.of_part(part.module.state_dict())
    program = OnnxExporter().export(part.module, copy.deepcopy(part.inputs), settings)
    refuse_other_values(name, program, part.module, part.inputs)
    return program


def refuse_other_values(name: str, program: Any, module: torch.nn.Module, inputs: Mapping[str, Any]) -> None:
    """Compares what onnxruntime gives for the example with what the module gives; weights in few bits cannot, and the
    same graph with those of the model does."""
    program = (
        program
        if program.quantization is None
        else program.lowered_again(quantization=None, dtype=program.config.dtype or "fp32")
    )
    with torch.no_grad():
        want = flatten(module(**copy.deepcopy(dict(inputs)))).tensors()
    for (output, expected), got in zip(want.items(), program(**inputs), strict=True):
        if not same_values(got, expected):
            raise problem(
                "E0401",
                f"{name}.onnx gives other values for {output} than the model does",
                "export it without --for, and report it with the model's config.json",
            )
