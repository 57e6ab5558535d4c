"""The first value of an artifact that is not what the model computes.

The model runs in eager mode at the inputs where outputs differ, and what its modules and operators give are the values
to be met. The artifact is run with all of its values as outputs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from ..artifacts.artifact import Artifact, further_outputs
from ..base.structure import flatten
from ..runtimes.onnxruntime import to_numpy
from ..runtimes.sessions import as_written, quiet_session
from ..values.eager_values import Pool, is_beneath, module_calls, operator_results
from ..values.tolerance import Tolerance
from ..values.wrong_values import Step, is_index, is_telling, wrong_values
from .runner import Runner


def first_difference(
    artifact: Artifact, runner: Runner, model: Any, inputs: Mapping[str, Any], tolerance: Tolerance
) -> dict[str, Any] | None:
    """A dict with text, node, op, value, file, line and module; None where it cannot be told."""
    try:
        reference = Reference(model, inputs, tolerance)
        values = all_values(artifact, runner, inputs)
    except Exception:  # what fails here has its own report; the mismatch is reported without this help
        return None
    return Search(artifact, values, reference).result()


def all_values(artifact: Artifact, runner: Runner, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Every value of the main graph, computed as the file says, without onnxruntime's own rewriting."""
    outputs = {row["name"] for row in artifact.summary["outputs"]}
    names = [name for node in artifact.summary["nodes"] for name in node[4] if name and name not in outputs]
    model = artifact.path.read_bytes() + further_outputs(names)
    session = quiet_session(model, weights_in=artifact.path.parent.absolute(), **as_written())
    feeds = {name: to_numpy(value) for name, value in runner.feeds(inputs).items()}
    results = session.run(None, feeds)
    return dict(zip([o.name for o in session.get_outputs()], results, strict=True))


class Reference:
    """What the model computes, operator by operator, and whether a value is among it."""

    def __init__(self, model: Any, inputs: Mapping[str, Any], tolerance: Tolerance):
        self.pool = Pool(tolerance)
        self.inputs = list(flatten(dict(inputs)).tensors().values())
        self.calls = module_calls(model, inputs)
        for tensor in self.inputs:
            self.pool.add(tensor)
        for result in operator_results(model, inputs):
            self.pool.add(result.tensor, result)

    def nearest(self, value: torch.Tensor, module: str) -> tuple[float, str]:
        """The smallest distance from what an operator of this module gave in this shape, and that operator."""
        best = (math.inf, "")
        for known in self.pool.alike(value):
            if known.note is None or known.tensor.shape != value.shape or not value.numel():
                continue
            if is_beneath(known.note.module, module):
                gap = (value.double() - known.tensor.double()).abs().max().item()
                best = min(best, (gap, known.note.op))
        return best


class Search:
    def __init__(self, artifact: Artifact, values: Mapping[str, Any], reference: Reference):
        self.reference = reference
        self.nodes = artifact.summary["nodes"]
        self.outputs = [row["name"] for row in artifact.summary["outputs"]]
        self.tensors = {name: torch.from_numpy(np.array(value)) for name, value in values.items()}
        self.right = {name: is_index(value) or reference.pool.has(value) for name, value in self.tensors.items()}

    def result(self) -> dict[str, Any] | None:
        wrong = [name for name in self.outputs if not self.right.get(name, True)]
        if not wrong:
            return {"text": "none of the file's: with onnxruntime's graph optimizations off they are right"}
        steps = [Step(node[3], node[4]) for node in self.nodes]
        found = wrong_values(steps, self.right, lambda name: is_telling(self.tensors[name]), wrong)
        rows = [(self.nodes[index], name) for index, name in found]
        inside = self._in_first_module(rows)
        # A mask that is the same throughout may be one that the model does without.
        telling = [row for row in rows if is_telling(self.tensors[row[1]])]
        return next((self._row(*row) for row in [*inside, *telling, *rows]), None)

    def _in_first_module(self, rows: list[tuple[Any, str]]) -> list[tuple[Any, str]]:
        """Those in the first module whose inputs the file has and whose result it has not."""
        values = Pool(self.reference.pool.tolerance)
        for tensor in [*self.reference.inputs, *self.tensors.values()]:
            values.add(tensor)
        for call in self.reference.calls[:-1]:  # the last is the model itself
            beneath = [row for row in rows if is_beneath(_module(row[0]), call.path)]
            if beneath and not all(map(values.has, call.outputs)) and all(map(values.has, call.inputs)):
                return beneath
        return []

    def _row(self, node: Any, name: str) -> dict[str, Any]:
        op, title, place, *_ = node
        gap, nearest = self.reference.nearest(self.tensors[name], _module(node))
        file, _, line = place.rpartition(":")
        amount = f", {gap:.3g} away from {nearest}" if nearest else ""
        return {
            "text": f"{name}, of the node {title} ({op}){amount}",
            "value": name,
            "node": title,
            "op": op,
            "file": file,
            "line": int(line) if line.isdecimal() else 0,
            "module": _module(node),
        }


def _module(node: Any) -> str:
    """The path of the module is the first part of the node's title."""
    return node[1].rpartition("/")[0]
