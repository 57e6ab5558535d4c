"""The first value of an artifact that is not what the model computes.

The model is captured at the inputs where outputs differ, and its graph is run node by node: these are the values to be
met. The artifact is run with all of its values as outputs. One that is none of the model's may be a step between two of
them, as a product before its bias: then a value that follows from it is right again. The first value that is not the
model's, and from which nothing right follows, is the one that is wrong."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch

from ..artifact import Artifact, further_outputs
from ..exporters.onnx_session import quiet_session, to_numpy
from .session import Runner
from .tolerance import same_values


def first_difference(
    artifact: Artifact, runner: Runner, model: Any, inputs: Mapping[str, Any], atol: float
) -> dict[str, Any] | None:
    """A dict with text, node, op, value, file, line and module; None where it cannot be told."""
    from ..capturing import capture

    try:
        captured = capture(model, inputs, dynamic=True, test_guards=False)
        reference = Reference(captured, inputs, atol)
        values = all_values(artifact, runner, inputs)
    except Exception:  # what fails here has its own report; the mismatch is reported without this help
        return None
    return Search(artifact, values, reference).result()


def all_values(artifact: Artifact, runner: Runner, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Every value of the main graph, computed as the file says, without onnxruntime's own rewriting."""
    import onnxruntime

    outputs = {row["name"] for row in artifact.summary["outputs"]}
    names = [name for node in artifact.summary["nodes"] for name in node[4] if name and name not in outputs]
    model = artifact.path.read_bytes() + further_outputs(names)
    as_written = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = quiet_session(model, weights_in=artifact.path.parent.absolute(), graph_optimization_level=as_written)
    feeds = {name: to_numpy(value) for name, value in runner.feeds(inputs).items()}
    results = session.run(None, feeds)
    return dict(zip([o.name for o in session.get_outputs()], results, strict=True))


class Reference:
    """What the model computes, node by node, and whether a value is among it."""

    def __init__(self, captured: Any, inputs: Mapping[str, Any], atol: float):
        self.atol = atol
        self.rows = captured.program.nodes()
        self.values: dict[tuple[int, bool], list[Known]] = {}
        captured.program.run(captured._tensors((), inputs), self._keep)

    def _keep(self, index: int, results: list[torch.Tensor]) -> None:
        for result in results:
            if isinstance(result, torch.Tensor):
                tensor = (torch.view_as_real(result) if result.is_complex() else result).detach().clone()
                self.values.setdefault(_key(tensor), []).append(Known(index, tensor, _amount(tensor)))

    def has(self, value: torch.Tensor) -> bool:
        """Whether some node gives these numbers, in this shape or, where none has this shape, in another order."""
        amount, ordered = _amount(value), None
        for known in self.values.get(_key(value), ()):
            if abs(known.amount - amount) > 4 * self.atol * max(known.amount, amount):
                continue
            if known.tensor.shape == value.shape:
                if self._same(value, known.tensor):
                    return True
                continue
            if ordered is None:
                ordered = value.flatten().sort().values
            if self._same(ordered, known.tensor.flatten().sort().values):
                return True
        return False

    def _same(self, value: torch.Tensor, known: torch.Tensor) -> bool:
        return same_values(value.to(known.dtype), known, self.atol, floor=1e-6)

    def nearest(self, value: torch.Tensor, place: str) -> tuple[float, str]:
        """The smallest distance from a node of the same line and shape, and that node's operator."""
        best = (math.inf, "")
        for known in self.values.get(_key(value), ()):
            row = self.rows[known.node]
            if known.tensor.shape == value.shape and f"{row['file']}:{row['line']}" == place and value.numel():
                gap = (value.double() - known.tensor.double()).abs().max().item()
                best = min(best, (gap, row["op"]))
        return best


class Known(NamedTuple):
    node: int
    tensor: torch.Tensor
    amount: float


def _key(tensor: torch.Tensor) -> tuple[int, bool]:
    return tensor.numel(), tensor.is_floating_point()


def _amount(tensor: torch.Tensor) -> float:
    """The sum of magnitudes: values that are near have nearly the same."""
    return tensor.double().abs().nan_to_num(posinf=1.0).sum().item()


def _is_index(tensor: torch.Tensor) -> bool:
    """Sizes, axes and indices: targets compute them in their own way. Where one is wrong, what it leads to is found."""
    return not tensor.is_floating_point() and tensor.dtype != torch.bool


class Search:
    def __init__(self, artifact: Artifact, values: Mapping[str, Any], reference: Reference):
        self.reference = reference
        self.nodes = artifact.summary["nodes"]
        self.outputs = [row["name"] for row in artifact.summary["outputs"]]
        self.tensors = {name: torch.from_numpy(np.array(value)) for name, value in values.items()}
        self.right = {name: _is_index(tensor) or reference.has(tensor) for name, tensor in self.tensors.items()}

    def result(self) -> dict[str, Any] | None:
        if all(self.right.get(name, True) for name in self.outputs):
            return {"text": "none of the file's: with onnxruntime's graph optimizations off they are right"}
        wrong = self._from_which_nothing_right_follows()
        wanted = self._that_wrong_outputs_depend_on()
        for node in self.nodes:
            for name in node[4]:
                if name in wrong and name in wanted:
                    return self._row(node, name)
        return None

    def _from_which_nothing_right_follows(self) -> set[str]:
        wrong: set[str] = set()
        excused: set[str] = set()
        for node in reversed(self.nodes):
            if any(name in excused or self._tells(name) for name in node[4]):
                excused.update(name for name in node[3] if not self.right.get(name, True))
            wrong.update(name for name in node[4] if name not in excused and not self.right.get(name, True))
        return wrong

    def _tells(self, name: str) -> bool:
        """Whether a value is right in a way that its sources must be, too: a mask, or numbers that differ."""
        tensor = self.tensors.get(name)
        if tensor is None or not self.right[name] or _is_index(tensor) or tensor.numel() < 2:
            return False
        return tensor.dtype == torch.bool or bool((tensor != tensor.flatten()[0]).any())

    def _that_wrong_outputs_depend_on(self) -> set[str]:
        found = {name for name in self.outputs if not self.right.get(name, True)}
        for node in reversed(self.nodes):
            if found.intersection(node[4]):
                found.update(node[3])
        return found

    def _row(self, node: Any, name: str) -> dict[str, Any]:
        op, title, place, _, _ = node
        gap, nearest = self.reference.nearest(self.tensors[name], place)
        file, _, line = place.rpartition(":")
        amount = f", {gap:.3g} away from {nearest}" if nearest else ""
        return {
            "text": f"{name}, of the node {title} ({op}){amount}",
            "value": name,
            "node": title,
            "op": op,
            "file": file,
            "line": int(line) if line.isdecimal() else 0,
            "module": title.rpartition("/")[0],
        }
