"""The first value of an artifact that is not what the model computes.

The model is captured at the inputs where outputs differ, and its graph is run node by node: these are the values to be
met. The artifact is run with all of its values as outputs. From a wrong output the walk goes back along values that are
none of the model's, until everything that goes into a node is right: that node is the first that is wrong."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from ..artifact import Artifact, further_outputs
from ..exporters.onnx_session import to_numpy
from .session import Runner
from .tolerance import same_values


def first_difference(
    artifact: Artifact, runner: Runner, model: Any, inputs: Mapping[str, Any], atol: float
) -> dict[str, Any] | None:
    """A dict with text, node, op, value, file, line and module; None where it cannot be told."""
    from ..capturing import capture

    try:
        captured = capture(model, inputs, dynamic=False, test_guards=False)
        reference = Reference(captured, inputs, atol)
        values = all_values(artifact, runner, inputs)
    except Exception:  # what fails here has its own report; the mismatch is reported without this help
        return None
    walk = Walk(artifact, values, reference)
    for output in artifact.summary["outputs"]:
        if not walk.right(output["name"]):
            return walk.from_output(output["name"])
    return None


def all_values(artifact: Artifact, runner: Runner, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Every value of the main graph, computed as the file says, without onnxruntime's own rewriting."""
    import onnxruntime

    outputs = {row["name"] for row in artifact.summary["outputs"]}
    names = [name for node in artifact.summary["nodes"] for name in node[4] if name and name not in outputs]
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    folder = os.fspath(artifact.path.parent.absolute())
    options.add_session_config_entry("session.model_external_initializers_file_folder_path", folder)
    model = artifact.path.read_bytes() + further_outputs(names)
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    feeds = {name: to_numpy(value) for name, value in runner.feeds(inputs).items()}
    results = session.run(None, feeds)
    return dict(zip([o.name for o in session.get_outputs()], results, strict=True))


class Reference:
    """What the model computes, node by node, and whether a value is among it."""

    def __init__(self, captured: Any, inputs: Mapping[str, Any], atol: float):
        self.atol = atol
        self.rows = captured.program.nodes()
        self.values: dict[tuple[int, bool], list[tuple[int, torch.Tensor]]] = {}
        captured.program.run(captured._tensors((), inputs), self._keep)

    def _keep(self, index: int, results: list[torch.Tensor]) -> None:
        for result in results:
            if isinstance(result, torch.Tensor):
                tensor = torch.view_as_real(result) if result.is_complex() else result
                key = (tensor.numel(), tensor.is_floating_point())
                self.values.setdefault(key, []).append((index, tensor.detach().clone()))

    def has(self, value: torch.Tensor) -> bool:
        """Whether some node gives these numbers, in this shape or, where none has this shape, in another order."""
        ordered = None
        for _, known in self.values.get((value.numel(), value.is_floating_point()), ()):
            if known.shape == value.shape:
                if same_values(value.to(known.dtype), known, self.atol):
                    return True
                continue
            if ordered is None:
                ordered = value.flatten().sort().values
            if same_values(ordered.to(known.dtype), known.flatten().sort().values, self.atol):
                return True
        return False

    def nearest(self, value: torch.Tensor, place: str) -> tuple[float, str]:
        """The smallest distance from a node of the same line and shape, and that node's operator."""
        best = (math.inf, "")
        for index, known in self.values.get((value.numel(), value.is_floating_point()), ()):
            row = self.rows[index]
            if known.shape != value.shape or f"{row['file']}:{row['line']}" != place or not value.numel():
                continue
            gap = (value.double() - known.double()).abs().max().item()
            best = min(best, (gap, row["op"]))
        return best


class Walk:
    def __init__(self, artifact: Artifact, values: Mapping[str, Any], reference: Reference):
        self.values, self.reference = values, reference
        self.makers = {name: node for node in artifact.summary["nodes"] for name in node[4] if name}
        self.known: dict[str, bool] = {}

    def right(self, name: str) -> bool:
        """Whether a value is one of the model's; inputs and weights are taken for right."""
        if name not in self.makers or name not in self.values:
            return True
        if name not in self.known:
            self.known[name] = self._small(name) or self.reference.has(self._tensor(name))
        return self.known[name]

    def _small(self, name: str) -> bool:
        """Sizes and indices: the model has them as numbers of Python, so that no node gives them."""
        tensor = self._tensor(name)
        return not tensor.is_floating_point() and tensor.ndim <= 1

    def _tensor(self, name: str) -> torch.Tensor:
        return torch.from_numpy(np.array(self.values[name]))

    def from_output(self, name: str) -> dict[str, Any]:
        while True:
            wrong = [source for source in self.makers[name][3] if not self.right(source)]
            if not wrong:
                return self._row(name)
            name = wrong[0]

    def _row(self, name: str) -> dict[str, Any]:
        op, node, place, _, _ = self.makers[name]
        gap, nearest = self.reference.nearest(self._tensor(name), place)
        file, _, line = place.rpartition(":")
        amount = f", {gap:.3g} away from {nearest}" if nearest else ""
        return {
            "text": f"{name}, of the node {node} ({op}){amount}",
            "value": name,
            "node": node,
            "op": op,
            "file": file,
            "line": int(line) if line.isdecimal() else 0,
            "module": node.rpartition("/")[0],
        }
