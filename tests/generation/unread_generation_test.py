"""Generative models exported from a folder: what is read of their weights, and that the files generate the same."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest
import tiny_generators
import torch
import transformers as t
from zoo import ROWS

import modelport
from modelport import OnnxConfig, OnnxExporter
from modelport.base.structure import flatten
from modelport.generation.continuing import continuing
from modelport.generation.watching import watch_generate
from modelport.lazy.checkpoint_weights import CheckpointWeights
from modelport.lazy.folder import open_model
from modelport.weights import lazy_weights

PROMPT = {
    "input_ids": torch.tensor([[5, 6, 7, 8, 9], [0, 10, 11, 12, 13]]),
    "attention_mask": torch.tensor([[1, 1, 1, 1, 1], [0, 1, 1, 1, 1]]),
}
SETTINGS = {"max_new_tokens": 12, "min_new_tokens": 12, "do_sample": False}


def saved(model: Any, folder: Path) -> Any:
    model.save_pretrained(folder)
    return model.eval()


def exported(folder: Path, out: Path, **config: Any) -> tuple[Any, list[str]]:
    """The files, and what was said about reading weights."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        parts = OnnxExporter().export_for_generation(folder, PROMPT, OnnxConfig(**config))
    parts.save(out)
    return parts, [str(row.message) for row in said if "the weights are" in str(row.message)]


@pytest.mark.parametrize("weights", ["link", "copy"])
@pytest.mark.parametrize("name", tiny_generators.DECODERS)
def test_a_decoder_is_exported_with_its_cache_without_reading_its_weights(
    name: str, weights: str, tmp_path: Path
) -> None:
    torch.manual_seed(0)
    model = saved(tiny_generators.DECODERS[name](), tmp_path / "model")
    parts, said = exported(tmp_path / "model", tmp_path / "out", weights=weights)
    assert list(parts) == ["model"]
    assert said == []
    assert "past_key_values.0.key" in parts["model"].input_names
    got = modelport.load(tmp_path / "out").generate(**PROMPT, **SETTINGS)
    assert got.tolist() == model.generate(**PROMPT, **SETTINGS).tolist()


def test_products_of_one_tensor_are_joined_in_files_of_their_own_and_not_when_a_linked_one_is_loaded(
    tmp_path: Path,
) -> None:
    saved(tiny_generators.DECODERS["llama"](), tmp_path / "model")
    joined = {}
    for weights in ("copy", "link"):
        config = {"weights": weights, "operators": "onnxruntime"}
        parts, _ = exported(tmp_path / "model", tmp_path / weights, **config)
        joined[weights] = "products of one tensor" in {name for name, _, _ in parts["model"].graph.fusions()}
    assert joined == {"copy": True, "link": False}


def test_the_graph_is_that_of_a_model_in_memory(tmp_path: Path) -> None:
    model = saved(tiny_generators.DECODERS["qwen3"](), tmp_path / "model")
    in_memory = OnnxExporter().export_for_generation(model, PROMPT, OnnxConfig())
    parts, _ = exported(tmp_path / "model", tmp_path / "out")
    assert str(parts["model"]) == str(in_memory["model"])


def test_only_the_logits_of_the_last_token_are_computed_where_that_is_asked(tmp_path: Path) -> None:
    model = saved(tiny_generators.DECODERS["llama"](), tmp_path / "model")
    parts, said = exported(tmp_path / "model", tmp_path / "out", num_logits_to_keep=1)
    assert said == []
    assert parts["model"](**model_inputs(model))[0].shape[1] == 1


def model_inputs(model: Any) -> dict[str, Any]:
    """Of a step after the prompt."""
    return continuing(watch_generate(model, PROMPT, {"model": model}, 4)["model"]).inputs


def test_calls_without_values_have_the_shapes_of_calls_with_them(tmp_path: Path) -> None:
    saved(tiny_generators.DECODERS["gemma3"](), tmp_path / "model")
    model = open_model(tmp_path / "model")
    weights = lazy_weights.of(model)
    assert isinstance(weights, CheckpointWeights)
    with weights.only_shapes():
        unread = watch_generate(model, PROMPT, {"model": model}, 4)["model"]
    read = watch_generate(model, PROMPT, {"model": model}, 4)["model"]
    examples = [flatten(continuing(calls).inputs).tensors() for calls in (unread, read)]
    shapes = [{name: (x.shape, x.dtype) for name, x in example.items()} for example in examples]
    assert shapes[0] == shapes[1]


def test_the_settings_of_generate_come_from_the_folder(tmp_path: Path) -> None:
    model = tiny_generators.DECODERS["llama"]()
    model.generation_config.update(eos_token_id=[7, 9], do_sample=True, top_k=3)
    saved(model, tmp_path / "model")
    exported(tmp_path / "model", tmp_path / "out")
    written = json.loads((tmp_path / "out/generation_config.json").read_text())
    assert (written["eos_token_id"], written["top_k"]) == ([7, 9], 3)


@pytest.mark.parametrize("why", ["more in it than keys and values", "depends on its weights"])
def test_a_model_that_needs_values_reads_its_weights_says_why_and_links_them_all_the_same(
    why: str, tmp_path: Path
) -> None:
    name = {"more in it than keys and values": "Lfm2ForCausalLM", "depends on its weights": "JetMoeForCausalLM"}[why]
    model, _ = next(row for row in ROWS if row.model_class == name).build()
    saved(model, tmp_path / "model")
    _, said = exported(tmp_path / "model", tmp_path / "out", weights="link")
    assert len(said) == 1
    assert why in said[0]
    linked = [file for file in (tmp_path / "out").glob("*.onnx_data") if file.stat().st_nlink > 1]
    assert linked
    got = modelport.load(tmp_path / "out").generate(**PROMPT, **SETTINGS)
    assert got.tolist() == model.generate(**PROMPT, **SETTINGS).tolist()


@pytest.mark.parametrize("name", ["t5", "llava"])
def test_every_part_of_a_model_with_an_encoder_points_into_the_checkpoint(name: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = saved(getattr(tiny_generators, name)(), tmp_path / "model")
    given = dict(PROMPT)
    if name == "llava":
        given = {"input_ids": torch.tensor([[5, 99, 99, 99, 99, 6, 7]]), "pixel_values": torch.randn(1, 3, 16, 16)}
    parts = OnnxExporter().export_for_generation(tmp_path / "model", given, OnnxConfig(weights="link"))
    parts.save(tmp_path / "out")
    own = (tmp_path / "model/model.safetensors").stat().st_ino
    assert {(tmp_path / f"out/{part}.onnx_data").stat().st_ino for part in parts} == {own}
    got = modelport.load(tmp_path / "out").generate(**given, **SETTINGS)
    assert got.tolist() == model.generate(**given, **SETTINGS).tolist()


def test_a_checkpoint_that_lacks_weights_is_refused(tmp_path: Path) -> None:
    saved(t.LlamaModel(tiny_generators.DECODERS["llama"]().config), tmp_path / "model")
    with pytest.raises(modelport.ExportError, match="E0104"):
        open_model(tmp_path / "model", model_class="LlamaForCausalLM")
