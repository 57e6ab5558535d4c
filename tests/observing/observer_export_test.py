"""Export of observed calls: one graph for all of them, checked in onnxruntime on these and on calls it never saw."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import onnx
import pytest
import torch
from tiny_models import tiny
from zoo import ROWS

import modelport
from modelport import InputObserver

MODELS = {row.name: row for row in ROWS}


def built(name: str) -> tuple[torch.nn.Module, dict[str, Any]]:
    model, inputs = MODELS[name].build()
    return model, {name: value for name, value in inputs.items() if name not in ("position_ids", "past_key_values")}


def observed(model: torch.nn.Module, inputs: Mapping[str, Any], **kwargs: Any) -> InputObserver:
    observer = InputObserver()
    with observer(model, store_n_calls=4):
        model.generate(**inputs, max_new_tokens=4, min_new_tokens=4, do_sample=False, **kwargs)
    return observer


def stepped(model: torch.nn.Module, inputs: Mapping[str, Any]) -> InputObserver:
    """A loop of one's own, without `generate`: everything in the first call, then one token after the other."""
    observer = InputObserver()
    mask = torch.ones_like(inputs["attention_mask"])
    with observer(model), torch.no_grad():
        output = model(**{**inputs, "attention_mask": mask})
        for _ in range(2):
            mask = torch.cat([mask, mask[:, :1]], dim=1)
            token = output.logits[:, -1:].argmax(-1)
            output = model(input_ids=token, attention_mask=mask, past_key_values=output.past_key_values)
    return observer


def succeeds(rows: list[dict[str, Any]], count: int) -> bool:
    assert [row["error"] for row in rows] == [""] * count
    return all(row["SUCCESS"] for row in rows)


def axes(path: Path) -> dict[str, list[Any]]:
    inputs = onnx.load(path, load_external_data=False).graph.input
    return {i.name: [d.dim_param or d.dim_value for d in i.type.tensor_type.shape.dim] for i in inputs}


def test_a_decoder_is_one_graph_for_prompt_and_tokens_also_in_other_batches(tmp_path: Path) -> None:
    model, inputs = built("llama")
    observer = observed(model, {name: value[:1] for name, value in inputs.items()})
    observer.export(tmp_path / "model.onnx")
    assert succeeds(observer.check_discrepancies(tmp_path / "model.onnx"), 4)
    assert axes(tmp_path / "model.onnx")["past_key_values.0.key"] == ["batch_size", 2, "past_sequence_length", 8]
    assert axes(tmp_path / "model.onnx")["input_ids"] == ["batch_size", "sequence_length"]

    # Padded rows, and several tokens after a past.
    other = observed(model, MODELS["llama"].inputs(1))
    with other(model, store_n_calls=1), torch.no_grad():
        step = other.infer_arguments(2)
        step |= {"input_ids": torch.randint(5, 90, (4, 3)), "position_ids": torch.arange(11, 14).repeat(4, 1)}
        total = step["past_key_values"].get_seq_length() + 3
        model(**step | {"attention_mask": torch.ones(4, total, dtype=torch.int64)})
    assert succeeds(other.check_discrepancies(tmp_path / "model.onnx"), 5)


def test_a_window_that_fills_is_one_graph_too(tmp_path: Path) -> None:
    for name in ("mistral", "gemma2"):
        model, inputs = built(name)
        observer = observed(model, inputs)
        observer.export(tmp_path / "model.onnx")
        assert not any("sliding_window" in name for name in axes(tmp_path / "model.onnx"))
        assert succeeds(observer.check_discrepancies(tmp_path / "model.onnx"), 4)
        # Shorter than the window at first.
        padded = {"input_ids": inputs["input_ids"][:, -2:], "attention_mask": torch.tensor([[0, 1], [1, 1], [1, 1]])}
        short = observed(model, padded)
        assert succeeds(short.check_discrepancies(tmp_path / "model.onnx"), 4)


def test_images_in_the_first_call_alone_are_an_input_that_may_be_empty(tmp_path: Path) -> None:
    for name in ("llava", "gemma3"):
        model, inputs = built(name)
        observer = stepped(model, {name: value[:1] for name, value in inputs.items()})
        observer.export(tmp_path / "model.onnx")
        assert axes(tmp_path / "model.onnx")["pixel_values"][0] == "pixel_values_0"
        rows = observer.check_discrepancies(tmp_path / "model.onnx", include_io=True)
        assert succeeds(rows, 3)
        assert "pixel_values: float32[0, 3" in rows[1]["inputs"]
        assert succeeds(stepped(model, inputs).check_discrepancies(tmp_path / "model.onnx"), 3)


def test_generate_of_a_vision_language_model_gives_its_decoder_and_its_encoder(tmp_path: Path) -> None:
    model, inputs = built("gemma3")
    decoder, encoder = InputObserver(), InputObserver()
    with decoder(model), encoder(model.base_model, method_name="get_image_features"):
        model.generate(**inputs, max_new_tokens=3, min_new_tokens=3, do_sample=False)
    decoder.export(tmp_path / "decoder.onnx")
    encoder.export(tmp_path / "encoder.onnx")
    assert succeeds(decoder.check_discrepancies(tmp_path / "decoder.onnx"), 3)
    assert succeeds(encoder.check_discrepancies(tmp_path / "encoder.onnx"), 1)
    assert axes(tmp_path / "encoder.onnx") == {"pixel_values": ["batch_size", 3, 32, 32]}
    # What the encoder returned and the decoder does not read is no input.
    inputs_of_decoder = axes(tmp_path / "decoder.onnx")
    assert "mm_encoder_outputs.image.pooler_output" in inputs_of_decoder
    assert "mm_encoder_outputs.image.last_hidden_state" not in inputs_of_decoder


def test_whisper_is_observed_by_one_observer_for_each_part(tmp_path: Path) -> None:
    model, inputs = built("whisper")
    encoder, decoder = InputObserver(), InputObserver()
    for features in inputs["input_features"][:2].split(1):
        with encoder(model.model.encoder, store_n_calls=4), decoder(model.model.decoder, store_n_calls=3):
            model.generate(features, max_new_tokens=4, min_new_tokens=4)
    assert (encoder.num_obs(), decoder.num_obs()) == (2, 6)
    encoder.export(tmp_path / "encoder.onnx")
    decoder.export(tmp_path / "decoder.onnx")
    assert succeeds(encoder.check_discrepancies(tmp_path / "encoder.onnx"), 2)
    assert succeeds(decoder.check_discrepancies(tmp_path / "decoder.onnx"), 6)
    # The keys of the encoder's states are there from the second call on: by one graph they are computed in each.
    assert not any(".encoder." in name for name in axes(tmp_path / "decoder.onnx"))


def test_what_no_single_graph_can_do_is_said_with_the_calls_that_one_can(tmp_path: Path) -> None:
    model, inputs = built("mamba")
    observer = observed(model, inputs)
    with pytest.raises(modelport.ExportError, match=r"(?s)no single graph .*calls=\[0\].*calls=\[1, 2, 3\]"):
        observer.export(tmp_path / "model.onnx")
    assert list(tmp_path.iterdir()) == []
    parts = {"prompt.onnx": [0], "token.onnx": [1, 2, 3]}
    for name, calls in parts.items():
        observer.export(tmp_path / name, calls=calls)
    for name, calls in parts.items():
        rows = observer.check_discrepancies(tmp_path / name)
        assert [row["index"] for row in rows] == calls and succeeds(rows, len(calls))


def test_another_method_is_exported_with_the_names_of_the_models_weights(tmp_path: Path) -> None:
    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(6, 6)

        def part(self, first: torch.Tensor, *rest: torch.Tensor, scale: float = 2.0, **more: torch.Tensor) -> Any:
            return self.linear(first) - rest[0] * rest[1] * scale + more["x"]

        def forward(self, first: torch.Tensor) -> Any:
            return self.part(first, first + 1, first + 2, scale=3.0, x=first[:1])

    model, observer = Model().eval(), InputObserver()
    model.register_forward_hook(lambda *_: pytest.fail("hooks are no part of the method"))
    with observer(model, method_name="part"):
        for rows in (5, 7):
            model.forward(torch.randn(rows, 6))
    program = observer.export(tmp_path / "model.onnx")
    assert program.input_names == ["first", "rest.0", "rest.1", "x"]
    assert "linear.weight" in {weight.name for weight in program.model_proto.graph.initializer}
    assert succeeds(observer.check_discrepancies(tmp_path / "model.onnx"), 2)


def test_a_model_for_one_batch_keeps_it_and_says_so(tmp_path: Path) -> None:
    class OneRow(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.reshape(1, x.shape[1]) * 2

    model, observer = OneRow().eval(), InputObserver()
    with observer(model):
        for length in (5, 7):
            model(torch.randn(1, length))
    with pytest.warns(UserWarning, match="the batch stays 1"):
        observer.export(tmp_path / "model.onnx")
    assert axes(tmp_path / "model.onnx")["x"][0] == 1
    assert succeeds(observer.check_discrepancies(tmp_path / "model.onnx"), 2)


def test_what_is_inferred_serves_torch_export_and_the_exporters(tmp_path: Path) -> None:
    model = tiny("llama", num_hidden_layers=1)
    observer = observed(model, built("llama")[1])
    shapes = observer.infer_dynamic_shapes(set_batch_dimension_for=True)
    exported = torch.export.export(model, (), observer.infer_arguments(), dynamic_shapes=shapes).module()
    captured = modelport.capture(model, observer.infer_arguments(), dynamic_shapes=shapes)
    for call in range(4):
        want = observer.info.results(call)["logits"]
        torch.testing.assert_close(exported(**observer.infer_arguments(call)).logits, want)
        torch.testing.assert_close(captured.run(**observer.infer_arguments(call)).logits, want)
    dynamic = modelport.OnnxConfig(dynamic_shapes=shapes)
    program = modelport.OnnxExporter().export(model, observer.infer_arguments(), dynamic)
    assert succeeds(observer.check_discrepancies(program), 4)
    assert succeeds(observer.check_discrepancies(program.model_proto), 4)


def test_tensors_that_only_kwargs_takes_are_dynamic_inputs_of_the_exporters() -> None:
    class More(torch.nn.Module):
        def forward(self, x: torch.Tensor, **more: torch.Tensor) -> torch.Tensor:
            return x + more["y"]

    model, observer = More().eval(), InputObserver()
    with observer(model):
        for rows in (5, 7):
            model(x=torch.randn(rows, 6), y=torch.randn(rows, 1))
    config = modelport.OnnxConfig(dynamic_shapes=observer.infer_dynamic_shapes())
    program = modelport.OnnxExporter().export(model, observer.infer_arguments(), config)
    assert succeeds(observer.check_discrepancies(program), 2)


def test_calls_that_are_stored_after_the_export_are_checked_too(tmp_path: Path) -> None:
    model, inputs = built("gemma3")
    observer = stepped(model, inputs)
    program = observer.export(None)
    with observer(model, store_n_calls=1), torch.no_grad():
        model(**MODELS["gemma3"].inputs(1))
    assert succeeds(observer.check_discrepancies(program), 4)


def test_a_model_that_computes_something_else_is_found_out(tmp_path: Path) -> None:
    model, inputs = built("llama")
    observer = observed(model, inputs)
    observer.export(tmp_path / "model.onnx")
    with torch.no_grad():
        model.lm_head.weight.mul_(1.5)
    other = observed(model, inputs)
    for row in other.check_discrepancies(tmp_path / "model.onnx", hist=(0.5, 0.001)):
        assert not row["SUCCESS"] and row["abs"] > 0.1
        assert 0 < row[">0.5"] <= row[">0.001"] <= row["n"]


def test_a_file_with_other_inputs_gives_rows_with_the_reason(tmp_path: Path) -> None:
    model, inputs = built("llama")
    modelport.OnnxExporter().export(model, dict(inputs), modelport.OnnxConfig(output_path=tmp_path / "model.onnx"))
    for row in observed(model, inputs).check_discrepancies(tmp_path / "model.onnx", progress_bar=True)[1:]:
        assert not row["SUCCESS"] and "invalid dimensions" in row["error"]
