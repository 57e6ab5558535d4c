"""What `--for CLIENT` writes, and what it refuses before anything is written. That clients run it is tested with the
clients themselves, in tests/clients."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import tiny_checkpoints
import torch
import transformers
from zoo import ROWS

import modelport
from modelport.cli import main
from modelport.contracts import CLIENTS, export_for_client, refuse_unknown, rewrite_parts, write_contract
from modelport.contracts.layout import Graph
from modelport.generation.prompts import for_generate

IDS = {"input_ids": torch.tensor([[5, 6, 7, 8]])}


def built(name: str) -> Any:
    model, _ = next(row for row in ROWS if str(row) == name).build()
    model.config.architectures = [type(model).__name__]
    return model


def config_of(model_class: str) -> Any:
    config = getattr(transformers, model_class).config_class()
    config.architectures = [model_class]
    return config


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def read(file: Path) -> dict[str, Any]:
    return json.loads(file.read_text())


@pytest.mark.parametrize(
    ("client", "model_class", "why"),
    [
        ("genai", "BertForMaskedLM", "language models of one graph"),
        ("genai", "T5ForConditionalGeneration", "Whisper only"),
        ("genai", "LlavaForConditionalGeneration", "language models of one graph"),
        ("transformers.js", "OlmoHybridForCausalLM", "it starts with a cache of past_conv.0.key and others"),
        ("transformers.js", "GPTBigCodeForCausalLM", "it starts with a cache of past_key_values.0.key_value"),
        ("transformers.js", "DiffLlamaForCausalLM", "no class of this name"),
        ("transformers.js", "SamModel", "vision_encoder.onnx, prompt_encoder_mask_decoder.onnx, which are not written"),
        ("transformers.js", "BartModel", "encoder_model.onnx, decoder_model_merged.onnx, which are not written"),
    ],
)
def test_a_model_that_the_client_does_not_know_is_refused_with_a_way_out(
    client: str, model_class: str, why: str
) -> None:
    with pytest.raises(modelport.ExportError) as raised:
        refuse_unknown(client, config_of(model_class))
    assert raised.value.code == "E0315"
    assert model_class in str(raised.value) and why in str(raised.value)
    assert "way out   export it without --for" in str(raised.value)


def test_the_client_that_does_know_it_is_a_way_out() -> None:
    with pytest.raises(modelport.ExportError, match=r"way out   --for transformers\.js"):
        refuse_unknown("genai", config_of("T5ForConditionalGeneration"))


@pytest.mark.parametrize("name", ["LlamaForCausalLM", "GPTNeoXForCausalLM", "WhisperForConditionalGeneration"])
def test_a_model_that_every_client_knows_is_not_refused(name: str) -> None:
    for client in CLIENTS:
        refuse_unknown(client, config_of(name))


def test_the_class_that_is_exported_counts_and_not_the_one_of_the_checkpoint() -> None:
    refuse_unknown("transformers.js", config_of("DiffLlamaForCausalLM"), "BertModel")


def test_a_client_that_is_unknown_is_refused_with_the_known_ones() -> None:
    with pytest.raises(modelport.ExportError, match=r"--for genai\n.*--for transformers.js"):
        refuse_unknown("vllm", config_of("LlamaForCausalLM"))


def test_genai_config_has_the_names_and_sizes_of_the_graph(tmp_path: Path) -> None:
    model = built("qwen3")
    model.generation_config.eos_token_id = [2, 3]
    settings = {"do_sample": True, "temperature": 0.6, "top_k": 20}
    model.generation_config.update(**settings)
    notes = export_for_client("genai", model, IDS, tmp_path)
    assert len(notes) == 1 and "no tokenizer" in notes[0]
    config = read(tmp_path / "genai_config.json")
    decoder = config["model"]["decoder"]
    assert config["model"] == {
        "type": "qwen3",
        "bos_token_id": 1,
        "eos_token_id": [2, 3],
        "pad_token_id": 0,
        "context_length": 64,
        "vocab_size": 99,
        "decoder": decoder,
    }
    sizes = ("filename", "head_size", "hidden_size", "num_attention_heads", "num_key_value_heads", "num_hidden_layers")
    assert [decoder[size] for size in sizes] == ["model.onnx", 16, 32, 4, 2, 2]
    # Positions are counted where keys are turned, inside attention.
    assert list(decoder["inputs"]) == ["input_ids", "attention_mask", "past_key_names", "past_value_names"]
    search = config["search"]
    assert search.items() >= {**settings, "max_length": 64, "past_present_share_buffer": True}.items()


def test_genai_gives_a_new_cache_to_a_graph_of_standard_operators(tmp_path: Path) -> None:
    export_for_client("genai", built("llama"), IDS, tmp_path, {"operators": "standard"})
    config = read(tmp_path / "genai_config.json")
    assert "position_ids" in config["model"]["decoder"]["inputs"]
    assert config["search"]["past_present_share_buffer"] is False


def test_genai_pads_with_the_end_token_where_there_is_no_other(tmp_path: Path) -> None:
    model = built("llama")
    model.generation_config.pad_token_id = model.config.pad_token_id = None
    export_for_client("genai", model, IDS, tmp_path)
    assert read(tmp_path / "genai_config.json")["model"]["pad_token_id"] == 2


def test_settings_that_genai_does_not_have_are_noted(tmp_path: Path) -> None:
    model = built("llama")
    model.generation_config.suppress_tokens = [7]
    assert any("suppress_tokens" in note for note in export_for_client("genai", model, IDS, tmp_path))


def test_states_have_the_names_that_transformers_js_fills(tmp_path: Path) -> None:
    model = built("granitemoehybrid")
    export_for_client("transformers.js", model, IDS, tmp_path)
    graph = Graph.read(tmp_path / "onnx/model.onnx")
    caches = ["past_conv.0", "past_ssm.0", "past_key_values.1.key", "past_key_values.1.value"]
    assert [name for name in graph.inputs if name.startswith("past")] == caches
    assert list(graph.outputs)[1:] == ["present_conv.0", "present_ssm.0", "present.1.key", "present.1.value"]
    assert read(tmp_path / "config.json")["layer_types"] == ["mamba", "attention"]
    assert transformers.AutoConfig.from_pretrained(tmp_path).layer_types == model.config.layer_types
    loaded = modelport.load(tmp_path)
    want = model.generate(**IDS, max_new_tokens=8, do_sample=False)
    assert loaded.generate(**IDS, max_new_tokens=8, do_sample=False).tolist() == want.tolist()


def test_infinity_is_written_as_json_has_it(tmp_path: Path) -> None:
    model = built("falcon_h1")
    modelport.OnnxExporter().export_for_generation(model, IDS).save(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(model.config.to_diff_dict(), default=str))  # as in checkpoints
    assert "Infinity]" in (tmp_path / "config.json").read_text()
    with pytest.raises(modelport.ExportError, match=r"no first cache for past_recurrent\.0"):
        write_contract("transformers.js", tmp_path, model.config)
    export_for_client("transformers.js", model, IDS, tmp_path / "other")
    json.loads((tmp_path / "other/config.json").read_text(), parse_constant=pytest.fail)
    assert transformers.AutoConfig.from_pretrained(tmp_path / "other").time_step_limit[1] == float("inf")


def test_a_cache_that_transformers_js_does_not_fill_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    model = built("falcon")
    model.config.multi_query = True  # which stands for keys and values in one tensor there
    with pytest.raises(modelport.ExportError, match=r"it starts with a cache of past_key_values\.0\.key_value"):
        export_for_client("transformers.js", model, IDS, tmp_path / "falcon")
    assert list(tmp_path.iterdir()) == []


def test_what_a_config_inside_leaves_to_defaults_is_filled_in(tmp_path: Path) -> None:
    model = built("llava")
    inputs = next(row for row in ROWS if str(row) == "llava").inputs(0)
    parts = modelport.OnnxExporter().export_for_generation(model, inputs)
    parts.save(tmp_path)
    rewrite_parts("transformers.js", tmp_path, model, inputs)
    there = read(tmp_path / "config.json")
    there["text_config"] = {"model_type": "llama"}
    (tmp_path / "config.json").write_text(json.dumps(there))
    write_contract("transformers.js", tmp_path, model.config, model.generation_config)
    assert read(tmp_path / "config.json")["text_config"]["num_hidden_layers"] == 2


def test_what_a_decoder_takes_besides_comes_with_its_embeddings_for_transformers_js(tmp_path: Path) -> None:
    row = next(row for row in ROWS if str(row) == "qwen3_vl")
    model = built("qwen3_vl")
    export_for_client("transformers.js", model, for_generate(row.inputs(0)), tmp_path)
    vision, words, decoder = (
        Graph.read(tmp_path / f"onnx/{name}.onnx")
        for name in ("vision_encoder", "embed_tokens", "decoder_model_merged")
    )
    width = 2 * model.config.text_config.hidden_size + 1  # another feature, and whether there are any
    ports = (vision.outputs["image_features"], words.outputs["inputs_embeds"], decoder.inputs["inputs_embeds"])
    assert [port.axes[-1] for port in ports] == [width] * 3
    taken = [name for name in decoder.inputs if not name.startswith("past")]
    assert taken == ["inputs_embeds", "attention_mask", "position_ids"]
    assert decoder.inputs["position_ids"].axes[0] == 3


@pytest.mark.parametrize("name", ["qwen2_vl", "qwen3_vl", "gemma3"])
def test_modelport_itself_runs_models_that_see_as_transformers_js_has_them(name: str, tmp_path: Path) -> None:
    row = next(row for row in ROWS if str(row) == name)
    model = built(name)
    export_for_client("transformers.js", model, for_generate(row.inputs(0)), tmp_path)
    given = for_generate(row.inputs(1)) | {"max_new_tokens": 8, "do_sample": False}
    assert modelport.load(tmp_path).generate(**given).tolist() == model.generate(**given).tolist()


def test_a_prompt_has_no_marks_of_an_answer_in_a_folder_for_transformers_js(tmp_path: Path) -> None:
    """Which its token types are for this model, and a check by rule has to know."""
    row = next(row for row in ROWS if str(row) == "paligemma")
    model = built("paligemma")
    export_for_client("transformers.js", model, row.inputs(0), tmp_path)  # has marks in the prompt
    assert modelport.check(tmp_path, model).ok
    given = {**row.inputs(1), "max_new_tokens": 8, "do_sample": False}
    unmarked = {**given, "token_type_ids": torch.zeros_like(given["input_ids"])}
    got = modelport.load(tmp_path).generate(**given).tolist()
    assert got == model.generate(**unmarked).tolist() != model.generate(**given).tolist()


def test_whisper_for_genai_is_not_for_modelport_itself(tmp_path: Path) -> None:
    row = next(row for row in ROWS if str(row) == "whisper")
    sound = {"input_features": row.inputs(0)["input_features"]}
    export_for_client("genai", built("whisper"), sound, tmp_path)
    with pytest.raises(modelport.ExportError, match="only onnxruntime-genai runs it") as raised:
        modelport.load(tmp_path)
    assert "onnxruntime_genai.Model(" in str(raised.value) and "export it without --for" in str(raised.value)


def test_transformers_js_finds_files_and_settings_where_it_looks(tmp_path: Path) -> None:
    model = built("llama")
    modelport.OnnxExporter().export_for_generation(model, IDS).save(tmp_path)
    before = read(tmp_path / "config.json")
    del before["num_hidden_layers"]  # left to the default, as in old checkpoints
    before["transformers.js_config"] = {"device": "wasm"}
    (tmp_path / "config.json").write_text(json.dumps(before | {"of_the_checkpoint": 1}))
    write_contract("transformers.js", tmp_path, model.config, model.generation_config)
    assert sorted(contents(tmp_path)) == [
        *(".modelport.json", "config.json", "generation_config.json", "onnx/model.onnx", "onnx/model.onnx_data"),
    ]
    config = read(tmp_path / "config.json")
    assert config["transformers.js_config"] == {
        "device": "wasm",
        "dtype": "fp32",
        "use_external_data_format": {"model.onnx": 1},
    }
    assert (config["num_hidden_layers"], config["of_the_checkpoint"]) == (2, 1)
    assert config["architectures"] == ["LlamaForCausalLM"]


def test_what_prepares_images_is_taken_out_of_the_file_of_the_processor(tmp_path: Path) -> None:
    model = built("vit")
    inputs = next(row for row in ROWS if str(row) == "vit").inputs(0)
    modelport.OnnxExporter().export(model, inputs, modelport.OnnxConfig(dynamic=True)).save(tmp_path / "model.onnx")
    whole = {"processor_class": "SomeProcessor", "image_processor": {"image_processor_type": "ViTImageProcessor"}}
    (tmp_path / "processor_config.json").write_text(json.dumps(whole))
    assert write_contract("transformers.js", tmp_path, model.config) == []
    prepared = read(tmp_path / "preprocessor_config.json")
    assert prepared == {"image_processor_type": "ViTImageProcessor", "processor_class": "SomeProcessor"}


@pytest.mark.parametrize("client", CLIENTS)
def test_a_graph_without_a_past_is_refused_and_the_folder_stays_as_it_was(client: str, tmp_path: Path) -> None:
    model = built("llama")
    inputs = {**IDS, "attention_mask": torch.ones_like(IDS["input_ids"])}
    modelport.OnnxExporter().export(model, inputs, modelport.OnnxConfig(dynamic=True)).save(tmp_path / "model.onnx")
    before = contents(tmp_path)
    with pytest.raises(modelport.ExportError, match="takes no past"):
        write_contract(client, tmp_path, model.config, model.generation_config)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("client", CLIENTS)
def test_an_input_that_the_client_does_not_give_is_refused(client: str, tmp_path: Path) -> None:
    model = built("llama")
    renamed = modelport.OnnxConfig(names={"attention_mask": "which_tokens_count"})
    modelport.OnnxExporter().export_for_generation(model, IDS, renamed).save(tmp_path)
    with pytest.raises(modelport.ExportError, match="which_tokens_count"):
        write_contract(client, tmp_path, model.config, model.generation_config)


def test_transformers_js_has_no_arrays_for_bf16(tmp_path: Path) -> None:
    model = built("llama").to(torch.bfloat16)
    with pytest.raises(modelport.ExportError, match="bf16") as raised:
        export_for_client("transformers.js", model, IDS, tmp_path)
    assert "way out   --dtype fp32" in str(raised.value)


def test_transformers_js_does_not_follow_links_to_the_checkpoint(tmp_path: Path) -> None:
    folder = tiny_checkpoints.save("bert", tmp_path)
    inputs = {"input_ids": torch.tensor([[5, 6, 7]]), "attention_mask": torch.ones(1, 3, dtype=torch.int64)}
    settings = modelport.OnnxConfig(dynamic=True, weights="link")
    modelport.OnnxExporter().export(folder, inputs, settings).save(folder / "model.onnx")
    config = transformers.AutoConfig.from_pretrained(folder)
    with pytest.raises(modelport.ExportError, match="way out   --weights copy"):
        write_contract("transformers.js", folder, config)


def test_the_command_line_puts_a_plain_model_where_transformers_js_looks(tmp_path: Path) -> None:
    folder = tiny_checkpoints.save("bert", tmp_path)
    for _ in range(2):  # also over what is there
        assert main(["export", "onnx", str(folder), str(tmp_path / "out"), "-q", "--for", "transformers.js"]) == 0
    files = {"config.json", "tokenizer_config.json", "onnx/model.onnx", "onnx/model.onnx_data"}
    assert set(contents(tmp_path / "out")) == {".modelport.json", *files}
