"""A recurrence is one operator of the graph: its values in each format, at one step, a few and many."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from zoo.quick_loading import quick_loading

import modelport
from modelport.base import core  # noqa: F401  (the extension defines the operators)

STEPS = (1, 2, 7, 300)


class Recurrent(torch.nn.Module):
    def __init__(self, name: str):
        super().__init__()
        self.operator = getattr(torch.ops.modelport, name)

    def forward(self, decay: torch.Tensor, x: torch.Tensor, state: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.operator(decay, x, None, 1), self.operator(decay, x, state, 1)


def inputs(steps: int) -> dict[str, torch.Tensor]:
    draws = torch.Generator().manual_seed(steps)
    decay, x = torch.rand(2, 2, steps, 3, generator=draws).unbind()
    return {"decay": decay, "x": x, "state": torch.rand(2, 3, generator=draws)}


def by_hand(name: str, decay: torch.Tensor, x: torch.Tensor, state: torch.Tensor) -> list[torch.Tensor]:
    def states(before: Any) -> torch.Tensor:
        found = []
        for step in range(x.shape[1]):
            now, factor = x[:, step], decay[:, step]
            if before is not None:
                now = factor * before + now if name == "linear_recurrence" else torch.maximum(factor + before, now)
            found.append(before := now)
        return torch.stack(found, 1)

    return [states(None), states(state)]


def as_pt2(model: Any, folder: Path) -> Callable[..., Any]:
    program = modelport.DynamoExporter().export(model, inputs(5), modelport.DynamoConfig(dynamic=True))
    with quick_loading():
        loaded = torch.export.load(program.save(folder / "model.pt2"))
    assert not [node for node in loaded.graph.nodes if "modelport" in str(node.target)]  # torch alone can run it
    return loaded.module()


def as_onnx(model: Any, folder: Path) -> Callable[..., Any]:
    program = modelport.OnnxExporter().export(model, inputs(5), modelport.OnnxConfig(dynamic=True))
    return modelport.load(program.save(folder / "model.onnx"))


def as_pte(model: Any, folder: Path) -> Callable[..., Any]:
    pytest.importorskip("executorch")
    bound = {name: {1: torch.export.Dim("steps", min=1, max=512)} for name in ("decay", "x")} | {"state": {}}
    config = modelport.ExecutorchConfig(dynamic_shapes=bound)
    return modelport.load(modelport.ExecutorchExporter().export(model, inputs(5), config).save(folder / "model.pte"))


@pytest.mark.parametrize("export", [as_pt2, as_onnx, as_pte])
@pytest.mark.parametrize("name", ["linear_recurrence", "maximum_recurrence"])
def test_a_recurrence_has_its_values_at_any_number_of_steps(name: str, export: Any, tmp_path: Path) -> None:
    model = Recurrent(name).eval()
    program = export(model, tmp_path)
    for steps in STEPS:
        given = inputs(steps)
        want = by_hand(name, **given)
        torch.testing.assert_close(list(model(**given)), want)
        got = program(**given)
        got = list(got.values()) if isinstance(got, dict) else list(got)
        torch.testing.assert_close(got, want)


def test_a_recurrence_is_one_node_of_onnx_and_the_length_of_one_step_none() -> None:
    exporter, model = modelport.OnnxExporter(), Recurrent("linear_recurrence").eval()
    for steps, config, scans in (
        (5, modelport.OnnxConfig(dynamic=True), 2),
        (1, modelport.OnnxConfig(dynamic=False), 0),
    ):
        program = exporter.export(model, inputs(steps), config)
        nodes = [node.op_type for node in program.model_proto.graph.node]
        assert nodes.count("Scan") == scans, nodes
        assert len(nodes) < 12, nodes
