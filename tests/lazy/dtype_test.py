"""Exports in another floating type: as if the model had been loaded in it, with no second copy of its weights."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import onnx
import pytest
import torch
from tiny_models import tiny
from zoo import ROWS

import modelport

BY_NAME = {row.name: row for row in ROWS}
IDS = {"input_ids": torch.arange(14).view(2, 7)}
TYPES = {"fp16": torch.float16, "bf16": torch.bfloat16}


def export(model: Any, inputs: Any, dtype: Any, **fields: Any) -> modelport.OnnxProgram:
    config = modelport.OnnxConfig(dynamic=True, dtype=dtype, **fields)
    return modelport.OnnxExporter().export(model, dict(inputs), config)


def graph_of(program: modelport.OnnxProgram) -> bytes:
    """The graph with its weights, without what the file says of where it came from."""
    return program.model_proto.graph.SerializeToString(deterministic=True)


def state_of(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in [*model.named_parameters(), *model.named_buffers()]}


# Rotary tables, ties, merged experts, batch norms, a weight that stays in float32.
@pytest.mark.parametrize("name", ["qwen3", "gpt2", "mixtral", "resnet", "t5"])
@pytest.mark.parametrize("dtype", TYPES)
def test_a_model_in_memory_a_folder_and_a_model_of_that_type_give_the_same_graph(
    name: str, dtype: str, tmp_path: Path
) -> None:
    model, inputs = BY_NAME[name].build()
    model.save_pretrained(tmp_path)
    before, config = state_of(model), model.config.to_dict()
    in_memory = export(model, inputs, dtype)
    after = state_of(model)
    assert all(torch.equal(before[n], after[n]) and before[n].dtype == after[n].dtype for n in before)
    assert model.config.to_dict() == config
    loaded = type(model).from_pretrained(tmp_path, dtype=TYPES[dtype]).eval()
    want = graph_of(export(loaded, inputs, None))
    assert graph_of(in_memory) == want
    assert graph_of(export(tmp_path, inputs, dtype)) == want


def test_the_values_are_compared_with_the_model_in_that_type(tmp_path: Path) -> None:
    model = tiny("llama")
    program = export(model, IDS, "fp16")
    report = modelport.check(program, model)
    assert report.ok, report
    assert report.atol == 0.15 and all(row.cosine > 0.999 for row in report.rows)
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    saved = program.save(tmp_path / "model.onnx")
    assert modelport.check(saved, model).ok


def test_the_capture_runs_in_that_type(tmp_path: Path) -> None:
    model = tiny("llama")
    captured = export(model, IDS, "bf16").captured
    model.save_pretrained(tmp_path)
    loaded = type(model).from_pretrained(tmp_path, dtype=torch.bfloat16).eval()
    assert torch.equal(captured.run(**IDS).logits, loaded(**IDS).logits)


class Scaled(torch.nn.Module):
    """No model of transformers: everything changes its type, as by `model.to`."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 3)
        self.register_buffer("scale", torch.tensor([2.0, 3.0, 4.0]), persistent=False)
        self.register_buffer("shift", torch.tensor([1, 2, 3]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.linear(x) * self.scale + self.shift
        return y if bool(self.scale.sum() > 8) else -y


def test_a_module_of_any_kind_is_as_if_it_had_been_converted() -> None:
    model = Scaled().eval()
    x = torch.randn(2, 4)
    program = export(model, {"x": x}, "float16")
    assert [o.type.tensor_type.elem_type for o in program.model_proto.graph.output] == [onnx.TensorProto.FLOAT16]
    (got,) = program(x=x.half())
    assert model.linear.weight.dtype == torch.float32
    torch.testing.assert_close(got, model.half()(x.half()), atol=1e-2, rtol=1e-2)


@pytest.mark.parametrize("where", ["memory", "folder"])
def test_values_without_room_are_counted_by_the_writer(where: str, tmp_path: Path) -> None:
    model, inputs = BY_NAME["qwen3"].build()
    with torch.no_grad():
        model.model.layers[0].mlp.up_proj.weight[0, :3] = 1e6
    model.save_pretrained(tmp_path / "checkpoint")
    source = model if where == "memory" else tmp_path / "checkpoint"
    with pytest.warns(UserWarning, match=r"infinite in model.layers.0.mlp.up_proj.weight \(3 of type f16\); bf16 has"):
        export(source, inputs, torch.float16).save(tmp_path / "half.onnx")
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*infinite")
        export(source, inputs, torch.bfloat16).save(tmp_path / "wide.onnx")


def test_an_unknown_type_is_refused() -> None:
    model, inputs = BY_NAME["qwen3"].build()
    with pytest.raises(modelport.ExportError, match=r"E0306.*dtype='int3'"):
        export(model, inputs, "int3")


def test_with_linked_weights_only_those_are_linked_that_are_stored_as_they_are_used(tmp_path: Path) -> None:
    tiny("llama").save_pretrained(tmp_path / "checkpoint")
    program = export(tmp_path / "checkpoint", IDS, "fp16", weights="link")
    program.save(tmp_path / "out.onnx")
    assert [path.name for path in program.files] == ["out.onnx"]
    assert not (tmp_path / "out.onnx_data").exists()
    assert modelport.check(tmp_path / "out.onnx").ok


PEAK = """
import sys
from pathlib import Path
import torch
import transformers
import modelport
from transformers import LlamaForCausalLM

sys.path.insert(0, sys.argv[2])
from peak_memory import peak_memory

def export(source, path):
    config = modelport.OnnxConfig(dynamic=True, dtype="fp16")
    modelport.OnnxExporter().export(source, {"input_ids": torch.arange(14).view(2, 7)}, config).save(path)

folder = Path(sys.argv[1])
small = LlamaForCausalLM.from_pretrained(folder / "small").eval()
for source in (folder / "small", small):
    export(source, folder / "warm.onnx")  # what is imported on the way
large = LlamaForCausalLM.from_pretrained(folder / "large").eval()
for parameter in large.parameters():
    parameter.sum()  # weights that are still in the file would count as memory of whoever reads them first
for source in (large, folder / "large"):
    with peak_memory() as peak:
        export(source, folder / "large.onnx")
    print(peak.grown >> 20)
"""


def test_weights_are_converted_in_pieces(tmp_path: Path) -> None:
    """The model has 134 MB: from memory the peak grows by less than a tenth of that, plus a piece of 16 MB of a matrix
    that is stored transposed; from its folder by one matrix at a time."""
    for name, size in (("large", 1024), ("small", 8)):
        sizes = {"vocab_size": 64, "hidden_size": size, "intermediate_size": 4 * size, "num_key_value_heads": 4}
        tiny("llama", **sizes).save_pretrained(tmp_path / name)
    command = [sys.executable, "-c", PEAK, str(tmp_path), str(Path(__file__).parents[1])]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    grown = dict(zip(("memory", "folder"), map(int, done.stdout.split()), strict=True))
    assert grown["memory"] < 30, grown
    assert grown["folder"] < 60, grown
