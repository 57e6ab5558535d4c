"""What `DynamoExporter` gives is torch's own ExportedProgram, and takes whatever the model was called with."""

from __future__ import annotations

import copy
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_models import tiny
from torch.export.passes import move_to_device_pass
from transformers import DynamicCache, EncoderDecoderCache, StaticCache
from zoo.quick_loading import quick_loading

import modelport


@pytest.fixture(autouse=True)
def loading() -> Any:
    with quick_loading():
        yield


@pytest.fixture(scope="module")
def llama() -> Any:
    return tiny("llama")


class Positions(torch.nn.Module):
    """Makes tensors from nothing, and moves what it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.register_buffer("scale", torch.arange(4.0), persistent=False)
        self.eval()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        places = torch.arange(x.shape[1], device=x.device)[:, None] + torch.ones(1, device=x.device)
        return (self.linear(x) * self.scale + places + torch.tensor(2.0)).to(x.device)


def inputs(batch: int = 3, seq: int = 7) -> dict[str, torch.Tensor]:
    ids = torch.randint(0, 99, (batch, seq))
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


def exported(model: Any, example: dict[str, Any]) -> modelport.ExportedProgram:
    return modelport.DynamoExporter().export(model, example, modelport.DynamoConfig(dynamic=True))


def test_it_is_an_exported_program_before_torch_made_anything_of_it(tmp_path: Path) -> None:
    program = exported(Positions(), {"x": torch.randn(2, 3, 4)})
    program.save(tmp_path / "model.pt2")
    assert isinstance(program, torch.export.ExportedProgram) and set(vars(program)) == {"captured"}
    assert not hasattr(program, "no_such_thing")
    assert program.graph_module is program.graph_module and "_graph_module" in vars(program)


def test_torch_saves_copies_and_decomposes_it_as_its_own(tmp_path: Path) -> None:
    model = Positions()
    program = exported(model, {"x": torch.randn(2, 3, 4)})
    torch.export.save(program, tmp_path / "model.pt2")
    other = torch.randn(5, 6, 4)
    with torch.no_grad():
        for made in (torch.export.load(tmp_path / "model.pt2"), copy.deepcopy(program), program.run_decompositions()):
            torch.testing.assert_close(made.module()(x=other), model(other))


def test_it_has_the_weights_of_the_model_and_the_example(llama: Any) -> None:
    example = inputs()
    program = exported(llama, dict(example))
    assert program.state_dict["lm_head.weight"].data_ptr() == llama.lm_head.weight.data_ptr()
    assert program.example_inputs is not None and program.example_inputs[0] == ()
    torch.testing.assert_close(program.example_inputs[1], example)


def test_its_file_has_the_example_unless_that_needs_classes(llama: Any, tmp_path: Path) -> None:
    example = inputs()
    loaded = torch.export.load(exported(llama, dict(example)).save(tmp_path / "llama.pt2"))
    torch.testing.assert_close(loaded.example_inputs, ((), example))
    with_cache = exported(llama, inputs() | {"past_key_values": DynamicCache()})
    assert torch.export.load(with_cache.save(tmp_path / "cache.pt2")).example_inputs is None


def test_an_argument_without_a_tensor_is_an_argument(llama: Any, tmp_path: Path) -> None:
    program = exported(llama, inputs() | {"past_key_values": DynamicCache()})
    loaded = torch.export.load(program.save(tmp_path / "llama.pt2"))
    with torch.no_grad():
        for made in (program, loaded):
            other = inputs(2, 5)
            got = made.module()(**other, past_key_values=DynamicCache())
            torch.testing.assert_close(got.logits, llama(**other).logits)


def test_a_cache_whose_flags_have_numbers_as_keys_is_taken_also_from_a_file(tmp_path: Path) -> None:
    t5 = tiny("t5")
    ids = torch.randint(3, 99, (2, 6))
    with torch.no_grad():
        encoded = t5.encoder(ids)
        empty = EncoderDecoderCache(DynamicCache(), DynamicCache())
        cache = t5(encoder_outputs=encoded, decoder_input_ids=ids[:, :3], past_key_values=empty).past_key_values
        example = {"encoder_outputs": encoded, "decoder_input_ids": ids[:, 3:4], "past_key_values": cache}
        want = t5(**copy.deepcopy(example)).logits
        program = modelport.DynamoExporter().export(t5, copy.deepcopy(example))
        for made in (program, torch.export.load(program.save(tmp_path / "t5.pt2"))):
            torch.testing.assert_close(made.module()(**copy.deepcopy(example)).logits, want)


def test_a_cache_of_fixed_size_is_written_in_place(llama: Any, tmp_path: Path) -> None:
    cache = StaticCache(config=llama.config, max_cache_len=12)
    ids = torch.randint(0, 99, (1, 4))
    with torch.no_grad():
        llama(ids, past_key_values=cache)
        step = {"input_ids": ids[:, :1], "position_ids": torch.tensor([[4]])}
        program = modelport.DynamoExporter().export(llama, step | {"past_key_values": copy.deepcopy(cache)})
        eager, ours = copy.deepcopy(cache), copy.deepcopy(cache)
        module = program.module()
        for position in (4, 5, 6):
            step = {"input_ids": torch.randint(0, 99, (1, 1)), "position_ids": torch.tensor([[position]])}
            want = llama(**step, past_key_values=eager).logits
            torch.testing.assert_close(module(**step, past_key_values=ours).logits, want)
    assert int(ours.get_seq_length()) == 7
    torch.testing.assert_close(ours.layers[1].keys, eager.layers[1].keys)
    again = modelport.load_pt2(program.save(tmp_path / "step.pt2"))
    assert len(again.output_names) == len(program.captured.output_names)


class OnOneDevice(torch.fx.Interpreter):
    def run_node(self, node: torch.fx.Node) -> Any:
        result = super().run_node(node)
        assert not isinstance(result, torch.Tensor) or result.device.type == "meta", node
        return result


def test_a_program_moves_to_another_device_with_all_that_it_makes(tmp_path: Path) -> None:
    path = exported(Positions(), {"x": torch.randn(2, 3, 4)}).save(tmp_path / "model.pt2")
    moved = move_to_device_pass(torch.export.load(path), "meta")
    OnOneDevice(moved.module()).run(torch.randn(5, 6, 4, device="meta"))


def test_a_capture_runs_where_its_inputs_are() -> None:
    captured = exported(Positions(), {"x": torch.randn(2, 3, 4)}).captured
    assert captured.run(x=torch.randn(5, 6, 4, device="meta")).device.type == "meta"
    assert captured.run(x=torch.randn(5, 6, 4)).device.type == "cpu"


def test_nothing_in_the_text_of_a_graph_depends_on_the_device() -> None:
    here = exported(Positions(), {"x": torch.randn(2, 3, 4)}).captured
    assert "device" not in str(here).replace("aten.to.device", "")


def test_the_archive_has_the_records_that_torch_writes(tmp_path: Path) -> None:
    program = exported(Positions(), {"x": torch.randn(2, 3, 4)})
    torch.export.save(program, tmp_path / "theirs.pt2")
    names = [
        {name.partition("/")[2] for name in zipfile.ZipFile(path).namelist() if "data/weights" not in name}
        for path in (program.save(tmp_path / "ours.pt2"), tmp_path / "theirs.pt2")
    ]
    assert names[1] - names[0] <= {".data/serialization_id", ".format_version", ".storage_alignment"}


class WritesTwoInputs(torch.nn.Module):
    def forward(self, x: torch.Tensor, z: torch.Tensor) -> tuple[torch.Tensor, ...]:
        x.add_(1)
        z.copy_(x)
        return x, z, x


def test_inputs_with_the_same_contents_are_both_written_however_often_they_are_returned(tmp_path: Path) -> None:
    model = WritesTwoInputs().eval()
    program = modelport.DynamoExporter().export(model, {"x": torch.zeros(3), "z": torch.ones(3)}, {})
    program.save(tmp_path / "writes.pt2")
    given, wanted = ({"x": torch.full((3,), 5.0), "z": torch.zeros(3)} for _ in range(2))
    results = torch.export.load(tmp_path / "writes.pt2").module()(**given)
    assert all(map(torch.equal, results, model(**wanted)))
    assert torch.equal(given["x"], wanted["x"]) and torch.equal(given["z"], wanted["z"])
