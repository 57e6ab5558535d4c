"""The first value that differs is found against what eager PyTorch computes, module by module."""

from __future__ import annotations

import re
from typing import Any

import pytest
import tiny_checkpoints
import torch

import modelport
from modelport.base.core import parse_graph
from modelport.capturing.captured import Captured
from modelport.inputs import example_inputs
from modelport.values.eager_values import module_calls, operator_results
from modelport.values.graph_check import first_difference


class Curve(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.sin(x)
        return torch.exp(x) - 1.0


class Row(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = Curve(), Curve()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        x = torch.tanh(x + 1)
        return self.second(x).sum(-1)


class Twice(torch.nn.Module):
    """One module, called twice without a node between."""

    def __init__(self) -> None:
        super().__init__()
        self.curve = Curve()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.curve(self.curve(x))


def altered(captured: Captured, old: str, new: str, which: int = 0) -> Captured:
    """The graph with one operator's name replaced in its text."""
    lines = str(captured).splitlines()
    found = [i for i, line in enumerate(lines) if f" = {old}(" in line]
    lines[found[which]] = lines[found[which]].replace(f" = {old}(", f" = {new}(")
    return Captured(parse_graph("\n".join(lines) + "\n"), captured.inputs, captured.outputs, captured.in_graph)


def inputs_of(rows: int) -> dict[str, torch.Tensor]:
    return {"x": torch.randn(rows, 6, generator=torch.Generator().manual_seed(rows))}


@pytest.mark.parametrize(
    ("model", "old", "new", "which", "module"),
    [
        (Row(), "aten.sin", "aten.cos", 0, "first"),
        (Row(), "aten.sin", "aten.cos", 1, "second"),
        (Row(), "aten.exp", "aten.cosh", 0, "first"),
        (Row(), "aten.exp", "aten.cosh", 1, "second"),
        (Row(), "aten.tanh", "aten.sigmoid", 0, "Row"),
        (Twice(), "aten.exp", "aten.cosh", 0, "curve"),
        (Twice(), "aten.exp", "aten.cosh", 1, "curve"),
    ],
)
def test_an_altered_graph_is_found_at_its_module_and_node(
    model: torch.nn.Module, old: str, new: str, which: int, module: str
) -> None:
    captured = modelport.capture(model.eval(), inputs_of(3), dynamic=True)
    wrong = altered(captured, old, new, which)
    same = [i for i, row in enumerate(wrong.program.nodes()) if row["op"] == new]
    first = first_difference(wrong, model, inputs_of(5))
    assert first is not None and (first["op"], first["module"], first["part_in"]) == (new, module, module)
    assert first["text"] == wrong.program.nodes()[same[-1]]["text"]
    with pytest.raises(modelport.ExportError, match=rf"they part in {module}.*first node that differs is .*{new}"):
        wrong.check(model, inputs_of(5))


class Exporting(torch.nn.Module):
    """Has another way for exporters, which is wrong: every capture makes the same mistake."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.sin(x)
        return x.relu() if torch.compiler.is_exporting() else torch.tanh(x)


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(6, 6)
        self.act = Exporting()
        self.norm = torch.nn.LayerNorm(6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x + self.act(self.linear(x)))


class Stack(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = torch.nn.ModuleList([Block(), Block()])
        self.blocks[0].act = torch.nn.Tanh()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = block(x)
        return x


def test_a_mistake_that_a_second_capture_would_make_too_is_found() -> None:
    torch.manual_seed(0)
    model = Stack().eval()
    captured = modelport.capture(model, inputs_of(3), dynamic=True, test_guards=False)
    with pytest.raises(modelport.ExportError, match=r"they part in blocks\.1\.act.*aten\.relu") as caught:
        captured.check(model, inputs_of(3))
    [found] = caught.value.diagnostics
    assert found["module"] == "blocks.1.act" and found["file"].endswith("first_difference_test.py")


def test_such_a_mistake_is_found_in_an_artifact_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("modelport.capturing.model.has_own_code", lambda _: False)  # the capture would refuse it
    torch.manual_seed(0)
    model = Stack().eval()
    program = modelport.OnnxExporter().export(model, inputs_of(3), modelport.OnnxConfig(dynamic=True))
    report = modelport.check(program, model, [inputs_of(3)])
    assert not report.ok and report.first is not None
    assert report.first["module"] == "blocks.1.act" and report.first["op"] == "Relu"


@pytest.mark.parametrize(("name", "act"), [("bert", "silu"), ("bert", "relu"), ("llama", "gelu"), ("llama", "relu")])
def test_a_model_with_another_activation_than_its_graph_differs_there(name: str, act: str) -> None:
    from transformers.activations import ACT2FN

    torch.manual_seed(0)
    model = tiny_checkpoints.MAKERS[name]()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.2 * torch.randn_like(weight))
    inputs = dict(example_inputs(model))
    captured = modelport.capture(model, inputs, dynamic=True)
    places = [(path, part) for path, part in model.named_modules() if re.search(r"\.1\.(mlp|intermediate)$", path)]
    [(path, part)] = places
    attribute = "act_fn" if hasattr(part, "act_fn") else "intermediate_act_fn"
    setattr(part, attribute, ACT2FN[act])
    first = first_difference(captured, model, inputs)
    assert first is not None and first["module"] == f"{path}.{attribute}"


def test_what_modules_and_operators_gave_is_recorded_in_order_and_the_model_stays_as_it_was() -> None:
    model = Row().eval()
    before = torch.get_rng_state()
    calls = module_calls(model, inputs_of(3))
    assert [call.path for call in calls] == ["first", "second", "Row"]
    results = operator_results(model, inputs_of(3), "second")
    assert [(result.op, result.module) for result in results] == [
        ("aten.sin", "second"),
        ("aten.exp", "second"),
        ("aten.sub.Tensor", "second"),
    ]
    assert torch.equal(results[-1].tensor, calls[1].outputs[0])
    assert torch.equal(torch.get_rng_state(), before)
    assert all(not part._forward_hooks and not part._forward_pre_hooks for part in model.modules())


def test_a_function_without_modules_is_searched_by_its_operators() -> None:
    def curve(x: Any) -> Any:
        return torch.exp(torch.sin(x)) * 2

    captured = modelport.capture(curve, inputs_of(3), dynamic=True)
    first = first_difference(altered(captured, "aten.exp", "aten.cosh"), curve, inputs_of(4))
    assert first is not None and first["op"] == "aten.cosh"
