"""`import modelport.plugin`: transformers' own AutoHfExporter gives ours."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from tiny_models import tiny
from transformers.exporters import AutoHfExporter, DynamoConfig, HfExporter, OnnxConfig, OpenVINOConfig
from transformers.exporters.auto import AUTO_EXPORTER_MAPPING
from transformers.exporters.utils import get_leaf_tensors

import modelport


@pytest.fixture(autouse=True)
def plugged_in() -> Iterator[None]:
    before = {name: dict.__getitem__(AUTO_EXPORTER_MAPPING, name) for name in AUTO_EXPORTER_MAPPING}
    import modelport.plugin as plugin

    AUTO_EXPORTER_MAPPING.update(
        dynamo=plugin.DynamoExporter,
        onnx=plugin.OnnxExporter,
        executorch=plugin.ExecutorchExporter,
        openvino=plugin.OpenVINOExporter,
    )
    yield
    AUTO_EXPORTER_MAPPING.update(before)


def inputs(batch: int = 3, seq: int = 7) -> dict[str, Any]:
    ids = torch.randint(0, 99, (batch, seq))
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


def test_an_exporter_of_theirs_takes_their_config_and_gives_our_program() -> None:
    llama = tiny("llama")
    config = DynamoConfig(dynamic=True)
    exporter = AutoHfExporter.from_config(config)
    assert isinstance(exporter, HfExporter)
    program = exporter.export(llama, inputs(), config=config)
    assert isinstance(program, modelport.ExportedProgram)
    other = inputs(2, 5)
    with torch.no_grad():
        torch.testing.assert_close(program.module()(**other).logits, llama(**other).logits)


def test_flags_are_no_arguments_of_the_program_and_gone_from_the_inputs() -> None:
    given = inputs() | {"use_cache": False, "return_dict": True}
    program = AutoHfExporter.from_config({"export_format": "dynamo"}).export(tiny("llama"), given, DynamoConfig())
    assert set(given) == {"input_ids", "attention_mask"}
    assert list(program.module()(**given)) == ["logits"]


def test_tensors_have_the_names_that_transformers_gives_them() -> None:
    llama = tiny("llama")
    with torch.no_grad():
        cache = llama(**inputs(2, 3)).past_key_values
    example = {"input_ids": torch.randint(0, 99, (2, 1)), "past_key_values": cache}
    config = OnnxConfig(dynamic=True, opset_version=20)
    program = AutoHfExporter.from_config(config).export(llama, example, config=config)
    assert program.opset == 20
    assert "input.past_key_values.layers.0.keys" in program.input_names
    assert program.output_names == [
        "logits",
        *(f"output.past_key_values.layers.{layer}.{side}" for layer in (0, 1) for side in ("keys", "values")),
    ]
    want = get_leaf_tensors(llama(**copy.deepcopy(example)))
    got = program(**get_leaf_tensors(example))
    torch.testing.assert_close(got, tuple(want.values()), atol=1e-4, rtol=1e-4)


def test_openvino_gives_its_own_model_with_the_cache_as_state() -> None:
    openvino = pytest.importorskip("openvino")
    llama = tiny("llama")
    with torch.no_grad():
        cache = llama(**inputs(2, 3)).past_key_values
    example = {"input_ids": torch.randint(0, 99, (2, 1)), "past_key_values": cache}
    config = OpenVINOConfig(dynamic=True)
    model = AutoHfExporter.from_config(config).export(llama, example, config=config)
    assert isinstance(model, openvino.Model)
    assert [port.get_any_name() for port in model.inputs] == ["input_ids", "beam_idx"]
    assert len(model.get_sinks()) == 4


def test_a_field_that_we_do_not_have_is_refused() -> None:
    @dataclasses.dataclass
    class Newer(DynamoConfig):
        speed: int = 1

    exporter = AutoHfExporter.from_config(DynamoConfig())
    assert exporter.export(tiny("llama"), inputs(), Newer()).captured is not None
    with pytest.raises(modelport.ExportError, match="no field speed"):
        exporter.export(tiny("llama"), inputs(), Newer(speed=2))
