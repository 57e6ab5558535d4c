"""`modelport.check`: artifacts held against their models, and the first value that differs named."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest
import tiny_checkpoints
import torch
from tiny_models import tiny
from zoo import ROWS

import modelport
from modelport.cli import main
from modelport.inputs import example_inputs


def exported(name: str, folder: Path, **settings: Any) -> tuple[Any, dict[str, Any], Path]:
    torch.manual_seed(0)
    model = tiny_checkpoints.MAKERS[name]()
    with torch.no_grad():
        for weight in model.parameters():  # fresh models have biases of zero, and hardly any effect of a layer
            weight.add_(0.2 * torch.randn_like(weight))
    inputs = example_inputs(model)
    program = modelport.OnnxExporter().export(model, dict(inputs), modelport.OnnxConfig(dynamic=True, **settings))
    return model, inputs, program.save(folder / "model.onnx", external_data=False)


@pytest.mark.parametrize("name", tiny_checkpoints.MAKERS)
def test_an_artifact_is_compared_at_four_sizes(name: str, tmp_path: Path) -> None:
    model, _, path = exported(name, tmp_path)
    report = modelport.check(path, model)
    assert report.ok and report.first is None
    assert {row.size for row in report.rows} == {"example", "batch 1", "longer", "odd"}
    assert len({tuple(row.axes.items()) for row in report.rows}) >= 3
    assert max(row.absolute for row in report.rows) < 1e-5
    assert all(row.argmax == 1 for row in report.rows)
    assert str(report).count(" ok") == len(report.rows)


def test_a_program_is_compared_without_a_file_of_its_own(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = tiny("bert for masked words")
    inputs = example_inputs(model)
    names = {"input_ids": "tokens", "logits": "scores"}
    program = modelport.OnnxExporter().export(model, dict(inputs), modelport.OnnxConfig(dynamic=True, names=names))
    report = modelport.check(program, model)
    assert report.ok and {row.output for row in report.rows} == {"scores"}


OTHER = {"Gelu": "Relu", "Add": "Mul", "Mul": "Add", "Sigmoid": "Tanh", "Sub": "Add"}


@pytest.mark.parametrize("name", tiny_checkpoints.MAKERS)
@pytest.mark.parametrize("optimize", [True, False])
def test_the_node_that_was_changed_is_the_first_that_differs(name: str, optimize: bool, tmp_path: Path) -> None:
    """Each node in turn that computes with floating values: what is named is that node, or what it is a part of."""
    model, inputs, path = exported(name, tmp_path, optimize=optimize)
    proto = onnx.shape_inference.infer_shapes(onnx.load(path))
    floats = {v.name for v in [*proto.graph.value_info, *proto.graph.output] if v.type.tensor_type.elem_type == 1}
    weights = {w.name for w in proto.graph.initializer}
    nodes = [
        (i, node)
        for i, node in enumerate(proto.graph.node)
        if node.op_type in OTHER and node.output[0] in floats and not set(node.input) <= weights
    ]
    tried = nodes[:: max(1, len(nodes) // 6)]
    assert len(tried) > 3
    exact: list[str] = []
    for index, node in tried:
        changed = onnx.load(path)
        changed.graph.node[index].op_type = OTHER[node.op_type]
        onnx.save(changed, tmp_path / "changed.onnx")
        report = modelport.check(tmp_path / "changed.onnx", model, [dict(inputs)])
        assert not report.ok
        assert report.first is not None
        if report.first["node"] == node.name:
            exact.append(node.name)
        assert report.first["module"] == node.name.rpartition("/")[0], (report.first, node.name)
        assert report.first["node"] in str(report.error())
    assert (
        len(exact) >= len(tried) // 3
    )  # of a product and its bias, which are one node of the model, the first is named


@pytest.mark.parametrize(
    "weight", ["model.embed_tokens.weight", "model.layers.1.self_attn.v_proj.weight", "lm_head.weight"]
)
def test_a_weight_that_was_changed_is_found_where_it_is_used(weight: str, tmp_path: Path) -> None:
    model, inputs, path = exported("llama", tmp_path)
    with torch.no_grad():
        model.get_parameter(weight)[::3] += 0.3  # a norm would undo a factor
    report = modelport.check(path, model, [dict(inputs)])
    assert not report.ok and report.first is not None
    assert report.first["module"] == weight.removesuffix(".weight")
    assert report.first["file"].startswith(("modeling_", "linear.py")) or report.first["line"] == 0


def test_values_that_only_the_optimizations_of_the_runtime_change_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from modelport.checking.runner import Runner

    model, inputs, path = exported("bert", tmp_path)
    run = Runner.run
    monkeypatch.setattr(Runner, "run", lambda self, feeds: [value + 0.1 for value in run(self, feeds)])
    report = modelport.check(path, model, [dict(inputs)])
    assert not report.ok
    assert "graph optimizations off" in str(report.error())


@pytest.mark.parametrize("name", ["t5", "bart", "whisper", "falcon_h1"])
def test_a_step_of_any_kind_of_cache_is_compared(name: str) -> None:
    row = next(row for row in ROWS if str(row) == name)
    model, inputs = row.build()
    with torch.no_grad():
        inputs = {**inputs, "past_key_values": model(**inputs, use_cache=True).past_key_values}
    program = modelport.OnnxExporter().export(model, dict(inputs), modelport.OnnxConfig(dynamic=True))
    report = modelport.check(program, model, inputs)
    outputs = {row.output for row in report.rows}
    assert report.ok and outputs == set(program.output_names)
    assert any(name.startswith("present") for name in outputs)
    renamed = modelport.OnnxConfig(dynamic=True, names={program.input_names[-1]: "a", program.output_names[1]: "b"})
    again = modelport.OnnxExporter().export(model, dict(inputs), renamed)
    assert modelport.check(again, model, inputs).ok


@pytest.mark.parametrize("name", ["t5", "whisper", "llama"])
def test_a_folder_that_takes_a_past_is_compared_by_what_it_generates(name: str, tmp_path: Path) -> None:
    row = next(row for row in ROWS if str(row) == name)
    model, inputs = row.build()
    given = {n: v for n, v in inputs.items() if n in ("input_ids", "attention_mask", "input_features")}
    modelport.OnnxExporter().export_for_generation(model, given).save(tmp_path / "out")
    model.save_pretrained(tmp_path / "model")
    report = modelport.check(tmp_path / "out", model)
    assert report.ok and {"logits", "tokens"} <= {row.output for row in report.rows}
    assert main(["check", str(tmp_path / "out"), "--model", str(tmp_path / "model"), "-q"]) == 0


def test_sizes_outside_the_ranges_of_the_file_are_skipped_with_a_note(tmp_path: Path) -> None:
    model = tiny("bert", max_position_embeddings=12)
    program = modelport.OnnxExporter().export(model, dict(example_inputs(model)), modelport.OnnxConfig(dynamic=True))
    report = modelport.check(program, model)
    assert report.ok
    fixed = modelport.OnnxExporter().export(model, dict(example_inputs(model)), modelport.OnnxConfig())
    report = modelport.check(fixed, model)
    assert report.ok and {row.size for row in report.rows} == {"example"}
    assert [skip.size for skip in report.skipped] == ["batch 1", "longer", "odd"]
    assert "where the file has 2" in str(report)


def _ids(batch: int, length: int) -> dict[str, torch.Tensor]:
    return {"input_ids": torch.randint(0, 100, (batch, length))}


def test_a_range_of_the_file_is_respected(tmp_path: Path) -> None:
    model = tiny("bert", max_position_embeddings=12)
    program = modelport.OnnxExporter().export(model, _ids(2, 7), modelport.OnnxConfig(dynamic=True))
    report = modelport.check(program, model, [_ids(2, 7), _ids(1, 12), _ids(1, 13)])
    assert report.ok and len({row.size for row in report.rows}) == 2
    [why] = [skip.why for skip in report.skipped]
    assert why == "sequence_length is 13 (axis 1 of input input_ids), and the program is right for 1 to 12"
    nothing = modelport.check(program, model, [_ids(1, 13)])
    assert not nothing.ok and "no value of" in str(nothing.error())


def test_inputs_that_the_file_does_not_take_are_refused(tmp_path: Path) -> None:
    model, inputs, path = exported("bert", tmp_path)
    with pytest.raises(modelport.ExportError, match="needs input_ids"):
        modelport.check(path, model, [{"attention_mask": inputs["attention_mask"]}])
    with pytest.raises(modelport.ExportError, match="does not take position_ids"):
        modelport.check(path, model, [dict(inputs) | {"position_ids": torch.arange(7)[None]}])
    with pytest.raises(modelport.ExportError, match="does not say which checkpoint"):
        modelport.check(path)
    with pytest.raises(modelport.ExportError, match="is no artifact"):
        modelport.check(model, model)


def test_an_output_that_is_missing_or_too_many_differs(tmp_path: Path) -> None:
    model, inputs, path = exported("llama", tmp_path)
    proto = onnx.load(path)
    del proto.graph.output[1]
    onnx.save(proto, path)
    report = modelport.check(path, model, [dict(inputs)], name_first=False)
    assert [row.what for row in report.rows if not row.ok] == ["is missing"]
    proto.graph.output[0].name = proto.graph.node[-1].output[0] = "other"
    onnx.save(proto, path)
    report = modelport.check(path, model, [dict(inputs)], name_first=False)
    assert {row.what for row in report.rows if not row.ok} == {"is missing", "is no output of the model"}


def with_limits(path: Path, change: Callable[[dict], object]) -> None:
    """Changes what the file says of its limits."""
    proto = onnx.load(path)
    props = {row.key: row.value for row in proto.metadata_props}
    limits = json.loads(props["modelport.limits"])
    change(limits)
    onnx.helper.set_model_props(proto, props | {"modelport.limits": json.dumps(limits)})
    onnx.save(proto, path)


@pytest.mark.parametrize("condition", ["__import__('os')", "width %", "9**9**9 == 1", "(" * 100000, "x" * 10**6])
def test_a_condition_of_the_file_that_cannot_be_read_is_refused_at_once(condition: str, tmp_path: Path) -> None:
    model, _, path = exported("bert", tmp_path)
    row = {"condition": condition, "where": {"file": "", "line": 0, "function": ""}, "module": ""}
    with_limits(path, lambda limits: limits["conditions"].append(row))
    begin = time.monotonic()
    with pytest.raises(modelport.ExportError, match="E0103"):
        modelport.check(path, model)
    assert time.monotonic() - begin < 5


def test_a_condition_of_the_file_excludes_sizes_that_break_it(tmp_path: Path) -> None:
    model, _, path = exported("bert", tmp_path)
    row = {"condition": "batch_size >= 2", "where": {"file": "m.py", "line": 3, "function": "f"}, "module": ""}
    with_limits(path, lambda limits: limits["conditions"].append(row))
    report = modelport.check(path, model)
    assert report.ok and "batch 1" not in {row.size for row in report.rows}
    assert "the program is right where batch_size >= 2, and here batch_size is 1" in str(report)


def test_a_size_inside_the_limits_whose_values_differ_is_a_failure_whatever_else_does_not_hold(tmp_path: Path) -> None:
    """What counts is what the file says of this size: not that some condition somewhere is false."""
    model, _, path = exported("bert", tmp_path)
    with torch.no_grad():
        model.bert.embeddings.word_embeddings.weight[:, :5] += 1
    report = modelport.check(path, model)
    assert not report.ok and {row.size for row in report.rows} == {"example", "batch 1", "longer", "odd"}
    assert report.skipped == []


def test_values_that_differ_outside_the_limits_of_the_file_are_told_of(tmp_path: Path) -> None:
    model, _, path = exported("bert", tmp_path)
    with_limits(path, lambda limits: next(dim for dim in limits["dims"] if dim["name"] == "batch_size").update(hi=2))
    given = [_ids(2, 7), _ids(3, 7)]
    for one in given:
        ids = one["input_ids"]
        one |= {"attention_mask": torch.ones_like(ids), "token_type_ids": torch.zeros_like(ids)}
    report = modelport.check(path, model, given)
    why = "batch_size is 3 (axis 0 of input input_ids), and the program is right for 1 to 2"
    assert report.ok and [skip.why for skip in report.skipped] == [why]
    with torch.no_grad():
        model.bert.embeddings.word_embeddings.weight[:, :5] += 1
    report = modelport.check(path, model, given)
    assert not report.ok and {row.size for row in report.rows} == {"inputs 0"}
    assert report.skipped[0].why.startswith(f"{why}; values differ there: logits by ")


class Noisy(torch.nn.Module):
    def __init__(self, noisy_only: bool = False) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.noisy_only = noisy_only

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        noise = torch.randn_like(x)
        return {"noise": noise} if self.noisy_only else {"noise": noise, "line": self.linear(x)}


def test_an_output_that_is_drawn_at_random_is_not_called_right(tmp_path: Path) -> None:
    inputs = {"x": torch.randn(3, 4)}
    model = Noisy().eval()
    program = modelport.OnnxExporter().export(model, dict(inputs), modelport.OnnxConfig(dynamic=True))
    path = program.save(tmp_path / "model.onnx")
    report = modelport.check(path, model, [inputs])
    assert report.ok and {row.output: row.ok for row in report.rows} == {"noise": None, "line": True}
    assert re.search(r"noise +random, not compared", str(report)) and str(report).count(" ok") == 1
    assert report.to_dict()["rows"][0]["ok"] is None
    with torch.no_grad():
        model.linear.weight[0] += 1
    assert not modelport.check(path, model, [inputs]).ok
    model = Noisy(noisy_only=True).eval()
    program = modelport.OnnxExporter().export(model, dict(inputs), modelport.OnnxConfig(dynamic=True))
    report = modelport.check(program, model, [inputs])
    assert not report.ok and "noise is random, not compared" in str(report.error())


class Counting(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, int]:
        return x + 1, x.shape[0] + 1


def test_a_number_that_the_file_does_not_give_is_not_called_right() -> None:
    model, inputs = Counting().eval(), {"x": torch.randn(3, 4)}
    program = modelport.OnnxExporter().export(model, dict(inputs), modelport.OnnxConfig(dynamic=True))
    report = modelport.check(program, model, [inputs])
    assert report.ok and [row.ok for row in report.rows] == [True, None]
    assert "a number, not in the file" in str(report)
