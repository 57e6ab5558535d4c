"""modelport.load: exported folders give what the model gives in PyTorch, token for token, and say what they lack."""

from __future__ import annotations

import copy
import itertools
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import tiny_checkpoints
import torch
from tiny_generators import DECODERS, export_as_optimum_does, export_decoder, llava, made, prompt, t5
from tiny_models import tiny
from transformers import DynamicCache

import modelport
from modelport import ExportError, OnnxConfig, OnnxExporter
from modelport.running.inputs import Call, decoder_feeds
from modelport.runtimes.onnx_file import OnnxFile
from modelport.runtimes.runner import Slot

TOKENS = 32


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The model and its folder, made when first asked for."""
    known: dict[str, tuple[Any, Path]] = {}

    def export(name: str) -> tuple[Any, Path]:
        if name not in known:
            model = made(DECODERS[name])
            known[name] = model, export_decoder(model, tmp_path_factory.mktemp("exported") / name)
        return known[name]

    return export


@pytest.fixture(scope="module")
def llama(exported: Any) -> tuple[Any, Any]:
    model, folder = exported("llama")
    return model, modelport.load(folder, threads=1)


def assert_same_tokens(model: Any, loaded: Any, **settings: Any) -> None:
    torch.manual_seed(7)
    want = model.generate(**copy.deepcopy(settings))
    torch.manual_seed(7)
    got = loaded.generate(**settings)
    assert got.tolist() == want.tolist()


def refused(load: Any) -> str:
    with pytest.raises(ExportError) as error:
        load()
    assert "way out" in str(error.value)
    return str(error.value)


# --- decoders ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DECODERS)
def test_the_tokens_are_those_of_the_model(name: str, exported: Any) -> None:
    model, folder = exported(name)
    loaded = modelport.load(folder, threads=1)
    assert len(set(model.generate(**prompt(1, 7), max_new_tokens=TOKENS)[0, 7:].tolist())) > 3  # not one word for ever
    assert_same_tokens(model, loaded, **prompt(1, 9), max_new_tokens=TOKENS)
    for settings in ({}, {"num_beams": 3}, {"do_sample": True, "top_k": 20}):
        assert_same_tokens(model, loaded, **prompt(2, 9), max_new_tokens=TOKENS, **settings)


@pytest.mark.parametrize(
    "settings",
    [
        {"use_cache": False},
        {"num_beams": 4, "num_return_sequences": 3},
        {"do_sample": True, "num_return_sequences": 2},
        {"prefill_chunk_size": 4},
        {"prompt_lookup_num_tokens": 3},  # guesses tokens, and takes them back where they are wrong
        {"repetition_penalty": 1.5, "no_repeat_ngram_size": 2},
    ],
    ids=str,
)
def test_every_way_to_generate_works(settings: dict[str, Any], llama: Any) -> None:
    assert_same_tokens(*llama, **prompt(1, 9), max_new_tokens=16, **settings)


def test_a_prompt_of_one_token_is_enough(llama: Any) -> None:
    assert_same_tokens(*llama, **prompt(1, 1), max_new_tokens=16)


def test_tokens_are_streamed_as_they_come(llama: Any) -> None:
    class Streamer:
        def __init__(self) -> None:
            self.tokens: list[int] = []

        def put(self, tokens: torch.Tensor) -> None:
            self.tokens += tokens.flatten().tolist()

        def end(self) -> None: ...

    streamer = Streamer()
    ids = llama[1].generate(**prompt(1, 5), max_new_tokens=8, streamer=streamer)
    assert streamer.tokens == ids[0].tolist()


def test_a_call_gives_the_output_class_of_the_model(llama: Any) -> None:
    model, loaded = llama
    given = prompt(2, 9)
    with torch.no_grad():
        want = model(**given, position_ids=(given["attention_mask"].cumsum(1) - 1).clamp(min=0))
    got = loaded(**given)
    assert type(got) is type(want)
    seen = given["attention_mask"].bool()
    torch.testing.assert_close(got.logits[seen], want.logits[seen], atol=1e-4, rtol=1e-4)
    assert got.past_key_values.get_seq_length() == 9 and len(got.past_key_values) == 2
    torch.testing.assert_close(
        got.past_key_values.layers[1].keys[1], want.past_key_values.layers[1].keys[1], atol=1e-4, rtol=1e-4
    )
    assert "past_key_values" not in loaded(**given, use_cache=False)
    assert torch.equal(loaded(given["input_ids"], given["attention_mask"], return_dict=False)[0], got.logits)


def test_only_the_logits_that_are_asked_for_are_given(llama: Any) -> None:
    assert llama[1](**prompt(2, 9), logits_to_keep=1).logits.shape == (2, 1, 100)


def test_a_text_goes_on_from_the_cache_of_another(llama: Any) -> None:
    model, loaded = llama
    first = loaded.generate(**prompt(1, 7), max_new_tokens=8, return_dict_in_generate=True)
    kept = copy.deepcopy(first.past_key_values)
    want = model.generate(**prompt(1, 7), max_new_tokens=16)
    for cache in (first.past_key_values, kept):
        more = loaded.generate(first.sequences, past_key_values=cache, max_new_tokens=8)
        assert torch.equal(more, want)


def test_the_cache_is_passed_on_without_being_copied(llama: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[dict[str, Any], dict[str, Any]]] = []
    run = OnnxFile.run

    def watched(self: OnnxFile, feeds: dict[str, Any], outputs: list[str]) -> Any:
        results = run(self, feeds, outputs)
        calls.append((feeds, dict(zip(outputs, results, strict=True))))
        return results

    monkeypatch.setattr(OnnxFile, "run", watched)
    llama[1].generate(**prompt(1, 5), max_new_tokens=4)
    assert len(calls) == 4
    for (_, before), (feeds, _) in itertools.pairwise(calls):
        for name in ("0.key", "0.value", "1.key", "1.value"):
            assert isinstance(before[f"present.{name}"], onnxruntime.OrtValue)
            assert feeds[f"past_key_values.{name}"] is before[f"present.{name}"]


def test_a_cache_of_transformers_is_refused(llama: Any) -> None:
    text = refused(lambda: llama[1].generate(**prompt(1, 5), past_key_values=DynamicCache(), max_new_tokens=4))
    assert "DynamicCache" in text


def test_a_mask_that_leaves_the_past_out_is_refused(llama: Any) -> None:
    cache = llama[1](**prompt(1, 5)).past_key_values
    text = refused(lambda: llama[1](**prompt(1, 2), past_key_values=cache))
    assert "covers 2 tokens; there are 5 before and 2 new ones" in text


def test_a_tensor_that_changes_the_model_and_no_file_takes_is_refused_by_generate_and_by_a_call(exported: Any) -> None:
    model, folder = exported("gpt2")
    loaded, given = modelport.load(folder, threads=1), prompt(2, 5)
    kinds = torch.ones_like(given["input_ids"])
    assert model(**given, token_type_ids=kinds).logits.ne(model(**given).logits).any()
    for call in (loaded.generate, loaded):
        text = refused(lambda call=call: call(**given, token_type_ids=kinds))
        assert "E0301" in text and "take no token_type_ids: the model was exported without it" in text
        assert "leave token_type_ids out" in text
    assert "take no inputs_embeds" in refused(lambda: loaded.generate(**given, inputs_embeds=torch.zeros(2, 5, 32)))
    assert "did you mean attention_mask=...?" in refused(lambda: loaded(**given, atention_mask=1 - kinds))


def test_a_prompt_longer_than_the_context_is_refused(llama: Any) -> None:
    text = refused(lambda: llama[1].generate(**prompt(1, 129), max_new_tokens=4))
    assert "has 129 tokens, and the model reads at most 128" in text


def test_the_model_is_on_the_cpu_and_has_no_weights_to_save(llama: Any, tmp_path: Path) -> None:
    loaded = llama[1]
    assert loaded.device == torch.device("cpu") and loaded.dtype == torch.float32
    assert all(weight.is_meta for weight in loaded.parameters())
    assert "copy the folder" in refused(lambda: loaded.save_pretrained(tmp_path))
    assert loaded.to("cpu") is loaded
    assert "stays on the CPU" in refused(lambda: loaded.to(torch.float16))


def test_a_decoder_without_a_cache_reads_everything_again(tmp_path: Path) -> None:
    model = made(DECODERS["llama"])
    OnnxExporter().export(model, prompt(2, 7), OnnxConfig(dynamic=True)).save(tmp_path / "model.onnx")
    model.config.save_pretrained(tmp_path)
    loaded = modelport.load(tmp_path)
    assert_same_tokens(model, loaded, **prompt(1, 7), max_new_tokens=8)


def test_files_may_lie_in_a_folder_below(exported: Any, tmp_path: Path) -> None:
    model, folder = exported("llama")
    shutil.copytree(folder, tmp_path / "onnx")
    (tmp_path / "onnx" / "config.json").rename(tmp_path / "config.json")
    for path in (tmp_path, tmp_path / "onnx", tmp_path / "onnx" / "model.onnx"):
        assert_same_tokens(model, modelport.load(path), **prompt(1, 7), max_new_tokens=4)


# --- several files ----------------------------------------------------------------------------------------------------


def test_an_encoder_decoder_as_optimum_writes_it_generates(tmp_path: Path) -> None:
    model = made(t5)
    loaded = modelport.load(export_as_optimum_does(model, tmp_path / "t5"))
    assert_same_tokens(model, loaded, **prompt(2, 8), max_new_tokens=TOKENS)
    assert_same_tokens(model, loaded, **prompt(2, 8), max_new_tokens=16, num_beams=3)
    assert_same_tokens(model, loaded, input_ids=prompt(1, 8)["input_ids"], max_new_tokens=4)  # without a mask
    out = loaded(**prompt(2, 8), decoder_input_ids=prompt(2, 3)["input_ids"])
    assert out.encoder_last_hidden_state.shape == (2, 8, 32)
    assert out.past_key_values.cross_attention_cache.get_seq_length() == 8
    (tmp_path / "t5" / "encoder_model.onnx").unlink()
    assert "encoder_model.onnx is missing" in refused(lambda: modelport.load(tmp_path / "t5"))


@pytest.mark.parametrize("merged", [True, False], ids=["the file merges", "the file only embeds"])
def test_a_model_that_sees_generates_with_pictures_and_without(merged: bool, tmp_path: Path) -> None:
    model = made(llava)
    given = prompt(2, 9)
    given["input_ids"][:, 4:8] = model.config.image_token_id
    given["pixel_values"] = torch.randn(2, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    OnnxExporter().export_for_generation(model, given, OnnxConfig()).save(tmp_path)
    if not merged:  # as transformers.js has it
        table = torch.nn.Embedding.from_pretrained(model.get_input_embeddings().weight.detach()).eval()
        program = OnnxExporter().export(
            table,
            {"input": given["input_ids"]},
            OnnxConfig(dynamic=True, names={"input": "input_ids", "output": "inputs_embeds"}),
        )
        program.save(tmp_path / "embed_tokens.onnx")
    loaded = modelport.load(tmp_path)
    assert_same_tokens(model, loaded, **given, max_new_tokens=TOKENS)
    assert_same_tokens(model, loaded, **given, max_new_tokens=8, num_beams=2)
    assert_same_tokens(model, loaded, **prompt(1, 5), max_new_tokens=8)


def test_what_a_file_wants_and_nobody_gave_is_made() -> None:
    wanted = [
        Slot("input_ids", torch.int64, ["batch_size", "sequence_length"]),
        Slot("attention_mask", torch.int64, ["batch_size", "total"]),
        Slot("position_ids", torch.int64, ["batch_size", "sequence_length"]),
        Slot("cache_position", torch.int64, ["sequence_length"]),
        Slot("use_cache_branch", torch.bool, [1]),
        Slot("num_logits_to_keep", torch.int64, []),
    ]
    ids = torch.tensor([[5, 6], [7, 8]])
    feeds = decoder_feeds(wanted, Call({"input_ids": ids, "logits_to_keep": 1}, 2, 2, 3), False)
    assert feeds["attention_mask"].tolist() == [[1] * 5] * 2
    assert feeds["position_ids"].tolist() == [[3, 4]] * 2
    assert feeds["cache_position"].tolist() == [3, 4]
    assert feeds["use_cache_branch"].tolist() == [True]
    assert feeds["num_logits_to_keep"].item() == 1
    mask = torch.tensor([[0, 0, 1, 1, 1], [1, 1, 1, 1, 1]])
    feeds = decoder_feeds(wanted, Call({"input_ids": ids, "attention_mask": mask}, 2, 2, 3), False)
    assert feeds["position_ids"].tolist() == [[1, 2], [3, 4]]
    more = [*wanted, Slot("pixel_values", torch.float32, ["batch_size"])]
    assert "pixel_values is missing" in refused(lambda: decoder_feeds(more, Call({"input_ids": ids}, 2, 2, 3), False))


# --- models that are only called --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    folder = tmp_path_factory.mktemp("bert")
    torch.manual_seed(0)
    model = tiny("bert for masked words")
    model.config.architectures = ["BertForMaskedLM"]
    OnnxExporter().export(model, prompt(2, 7), OnnxConfig(dynamic=True)).save(folder / "model.onnx")
    model.config.save_pretrained(folder)
    return model, folder


def test_a_plain_model_takes_tensors_arrays_and_lists_and_names_its_outputs(bert: Any) -> None:
    model, folder = bert
    loaded = modelport.load(folder)
    given = prompt(3, 5)
    with torch.no_grad():
        want = model(**given).logits
    arrays = {name: value.numpy().astype(np.int32) for name, value in given.items()}
    for inputs in (given, arrays, {name: value.tolist() for name, value in given.items()}):
        out = loaded(**inputs)
        torch.testing.assert_close(out.logits, want, atol=1e-4, rtol=1e-4)
        assert out["logits"] is out.logits and out[0] is out.logits and list(out) == ["logits"]
        (logits,) = out.to_tuple()
        assert logits is out.logits
    with pytest.raises(AttributeError, match="there are: logits"):
        _ = out.hidden_states


def test_a_plain_model_refuses_other_inputs_with_the_names_that_it_takes(bert: Any) -> None:
    loaded, given = modelport.load(bert[1]), prompt(2, 5)
    text = refused(lambda: loaded(input_ids=given["input_ids"], pixel_values=[1.0]))
    assert "needs attention_mask and does not take pixel_values" in text and "input_ids: int64[batch_size" in text
    assert "is float32, and the file takes int64" in refused(lambda: loaded(**given | {"input_ids": [[1.0]]}))
    assert "input_ids has 1 axes, and the file takes 2" in refused(lambda: loaded(**given | {"input_ids": [1]}))
    assert "by name" in refused(lambda: loaded(given["input_ids"]))


def test_a_plain_model_says_why_it_cannot_generate(bert: Any) -> None:
    assert "BertForMaskedLM cannot generate" in refused(lambda: modelport.load(bert[1]).generate())


def test_sizes_that_the_file_fixes_are_named(tmp_path: Path) -> None:
    model = tiny("vit")
    OnnxExporter().export(model, {"pixel_values": torch.zeros(1, 3, 32, 32)}, OnnxConfig()).save(tmp_path / "a.onnx")
    loaded = modelport.load(tmp_path / "a.onnx")
    text = refused(lambda: loaded(pixel_values=torch.zeros(2, 3, 32, 32)))
    assert "pixel_values has size 2 on axis 0, and the file takes 1" in text


# --- folders that are not what they should be -------------------------------------------------------------------------


def test_a_checkpoint_is_no_export(tmp_path: Path) -> None:
    folder = tiny_checkpoints.save("llama", tmp_path)
    assert f"modelport export onnx {folder} OUT" in refused(lambda: modelport.load(folder))
    assert "no such file or folder" in refused(lambda: modelport.load(tmp_path / "nothing"))
    assert "is no ONNX file" in refused(lambda: modelport.load(folder / "config.json"))
    (tmp_path / "llama.pt2").touch()
    assert f'modelport.load_pt2("{tmp_path}/llama.pt2")' in refused(lambda: modelport.load(tmp_path / "llama.pt2"))


def test_weights_that_are_missing_or_cut_off_are_named(exported: Any, tmp_path: Path) -> None:
    folder = shutil.copytree(exported("llama")[1], tmp_path / "llama")
    data = folder / "model.onnx_data"
    data.write_bytes(data.read_bytes()[:-100])
    assert "model.onnx_data is too short" in refused(lambda: modelport.load(folder))
    data.unlink()
    assert "model.onnx_data is missing" in refused(lambda: modelport.load(folder))
    (folder / "model.onnx").write_bytes(b"\x08\x07hello")
    assert "E0103" in refused(lambda: modelport.load(folder))


def test_a_folder_that_does_not_name_its_class_says_so(exported: Any, tmp_path: Path) -> None:
    folder = shutil.copytree(exported("llama")[1], tmp_path / "llama")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"architectures": ["NoSuchModel"]}))
    message = refused(lambda: modelport.load(folder).generate())
    assert "transformers has no class NoSuchModel" in message and "register(ItsConfig, ItsClass)" in message
    (folder / "config.json").unlink()
    assert "names its class" in refused(lambda: modelport.load(folder).generate())
    (folder / "model.onnx").rename(folder / "decoder_model_merged.onnx")
    assert "copy the config.json" in refused(lambda: modelport.load(folder))
    (folder / "config.json").write_text("[1")
    assert "config.json" in refused(lambda: modelport.load(folder))


def test_options_that_onnxruntime_does_not_have_are_refused(exported: Any) -> None:
    folder = exported("llama")[1]
    assert "has no enable_magic" in refused(lambda: modelport.load(folder, enable_magic=True))
    loaded = modelport.load(folder, threads=1, **{"session.disable_prepacking": "1"})
    assert loaded.generate(**prompt(1, 3), max_new_tokens=2).shape == (1, 5)
