"""`modelport diff`: it finds what differs, all of it, and says nothing where there is nothing."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import onnx
import pytest
import tiny_checkpoints
import torch
from onnx import numpy_helper

import modelport
from modelport.cli import main

SAME, DIFFERENT, ERROR = 0, 1, 2


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two versions of one model and their exports: bert, other, bert-onnx, other-onnx."""
    folder = tmp_path_factory.mktemp("two")
    model = tiny_checkpoints.MAKERS["bert"]()
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(torch.randn(weight.shape))  # no two are equal, which would be stored once
        model.save_pretrained(folder / "bert")
        model.bert.encoder.layer[1].output.dense.weight[3, 4] += 0.5
        model.bert.embeddings.LayerNorm.weight[0] += 0.25
    model.save_pretrained(folder / "other")
    for name in ("bert", "other"):
        assert main(["export", "onnx", str(folder / name), str(folder / f"{name}-onnx"), "--no-check", "-q"]) == 0
    return folder


def changes(one: Any, other: Any) -> dict[str, list[tuple[str, str, str]]]:
    sections = modelport.diff(one, other).sections
    return {
        section.name: [(change.kind, change.name, change.words) for change in section.changes]
        for section in sections
        if section.changes
    }


def test_an_artifact_and_its_copy_are_the_same(two: Path, tmp_path: Path, capsys: Any) -> None:
    shutil.copytree(two / "bert-onnx", tmp_path / "copy")
    assert main(["diff", str(two / "bert-onnx"), str(tmp_path / "copy")]) == SAME
    assert capsys.readouterr().out == "no difference\n"


def test_weights_that_were_trained_on_are_found_with_by_how_much(two: Path) -> None:
    """Large ones lie beside the file, small ones in it."""
    found = changes(two / "bert-onnx", two / "other-onnx")
    assert found["weights"] == [
        ("changed", "bert.embeddings.LayerNorm.weight", "other contents, by 0.25 at most"),
        ("changed", "bert.encoder.layer.1.output.dense.weight.transposed", "other contents, by 0.5 at most"),
    ]
    assert set(found) == {"about", "weights"}  # the checkpoint has another name


def test_checkpoints_are_compared_by_configuration_and_weights(two: Path, tmp_path: Path) -> None:
    shutil.copytree(two / "bert", tmp_path / "bert")
    config = json.loads((tmp_path / "bert/config.json").read_text())
    (tmp_path / "bert/config.json").write_text(json.dumps(config | {"hidden_act": "relu"}))
    assert changes(two / "bert", tmp_path / "bert") == {"metadata": [("changed", "hidden_act", "gelu -> relu")]}
    assert [row[1] for row in changes(two / "bert", two / "other")["weights"]] == [
        "bert.embeddings.LayerNorm.weight",
        "bert.encoder.layer.1.output.dense.weight",
    ]


def test_another_opset_differs_in_operators_by_module(two: Path, tmp_path: Path, capsys: Any) -> None:
    out = tmp_path / "out"
    assert main(["export", "onnx", str(two / "bert"), str(out), "--no-check", "-q", "--opset", "20"]) == 0
    found = changes(two / "bert-onnx", out)
    assert ("changed", "opset", "ai.onnx 23 -> ai.onnx 20") in found["settings"]
    assert ("removed", "Attention", "2") in found["operators"]
    assert [row[1] for row in found["modules"]] == [
        "bert.encoder.layer.0.attention.self",
        "bert.encoder.layer.1.attention.self",
    ]
    assert "weights" not in found or all(row[0] != "changed" for row in found["weights"])
    assert main(["diff", str(two / "bert-onnx"), str(out)]) == DIFFERENT
    text = capsys.readouterr().out
    assert text.index("1 removed") < text.index("- Attention: 2")  # counts first


@pytest.mark.parametrize("what", ["attribute", "wiring", "constant"])
def test_a_change_that_no_count_shows_is_found(what: str, two: Path, tmp_path: Path) -> None:
    shutil.copytree(two / "bert-onnx", tmp_path / "out")
    model = onnx.load(tmp_path / "out/model.onnx", load_external_data=False)
    if what == "attribute":
        node = next(node for node in model.graph.node if node.op_type == "Transpose")
        node.attribute[0].ints[:] = [0, 1, 2, 3]
    elif what == "wiring":
        node = next(node for node in model.graph.node if node.op_type == "Add" and "dense" in node.name)
        node.input[:] = reversed(node.input)
    else:
        weight = next(one for one in model.graph.initializer if one.name.startswith("v") and one.dims == [1])
        weight.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(weight) + 1, weight.name))
    onnx.save(model, tmp_path / "out/model.onnx")
    found = changes(two / "bert-onnx", tmp_path / "out")
    assert set(found) == ({"constants"} if what == "constant" else {"modules"})
    if what == "attribute":
        assert found["modules"][0][2] == "Transpose: perm=[0, 2, 1, 3] -> perm=[0, 1, 2, 3]"


def test_what_no_record_has_still_makes_a_difference(two: Path, tmp_path: Path) -> None:
    shutil.copytree(two / "bert-onnx", tmp_path / "out")
    model = onnx.load(tmp_path / "out/model.onnx", load_external_data=False)
    model.doc_string = "a word"
    onnx.save(model, tmp_path / "out/model.onnx")
    assert changes(two / "bert-onnx", tmp_path / "out") == {
        "bytes": [("changed", "model.onnx", "other bytes, in what is not compared above")]
    }


def test_captures_are_compared_as_objects_and_as_text(tmp_path: Path, capsys: Any) -> None:
    class Scaled(torch.nn.Module):
        def __init__(self, twice: bool) -> None:
            super().__init__()
            self.twice = twice
            self.inner = torch.nn.Linear(4, 4)
            torch.nn.init.ones_(self.inner.weight)
            torch.nn.init.ones_(self.inner.bias)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.inner(x).relu() * 2 if self.twice else self.inner(x).relu()

    inputs = {"x": torch.ones(2, 4)}
    one, other = (modelport.capture(Scaled(twice).eval(), inputs, dynamic=True) for twice in (False, True))
    assert modelport.diff(one, one).same
    found = changes(one, other)
    assert found["operators"] == [("added", "aten.mul.Tensor", "1")]
    assert len(found["modules"]) == 1 and found["modules"][0][2] == "+1 aten.mul.Tensor"
    (tmp_path / "one.txt").write_text(str(one))
    (tmp_path / "other.txt").write_text(str(other))
    assert main(["diff", str(tmp_path / "one.txt"), str(tmp_path / "one.txt")]) == SAME
    assert main(["diff", str(tmp_path / "one.txt"), str(tmp_path / "other.txt"), "--json"]) == DIFFERENT
    said = json.loads(capsys.readouterr().out.split("\n", 1)[1])
    assert said["sections"]["operators"]["changes"][0]["name"] == "aten.mul.Tensor"
    assert said["sections"]["weights"]["same"] == 2


def test_the_page_of_a_difference_has_all_of_it(two: Path, tmp_path: Path, capsys: Any) -> None:
    page = tmp_path / "diff.html"
    assert main(["diff", str(two / "bert"), str(two / "other"), "--html", str(page)]) == DIFFERENT
    assert "bert.embeddings.LayerNorm.weight" in page.read_text()


def test_what_cannot_be_read_is_an_error_and_no_difference(two: Path, tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "broken.onnx").write_bytes(b"no model")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken/model.safetensors").write_bytes(b"\xff" * 20)
    for other in ("nothing", "broken.onnx", "broken"):
        assert main(["diff", str(two / "bert-onnx"), str(tmp_path / other)]) == ERROR
        assert "error[E0103]" in capsys.readouterr().err
