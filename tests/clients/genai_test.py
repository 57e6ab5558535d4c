"""onnxruntime-genai runs what `--for genai` writes, and generates the tokens that eager PyTorch generates."""

from __future__ import annotations

import json
import wave
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime_genai as og
import pytest
import torch
from exported import NEW_TOKENS, built, generated, prompt, read_json, row_of, save_tokenizer, until_end
from transformers import WhisperFeatureExtractor

import modelport
from modelport import OnnxConfig
from modelport.artifacts.artifact import Artifact
from modelport.contracts import export_for_client
from modelport.contracts.genai import MODEL_TYPES

FAMILIES = ["llama", "qwen2", "qwen3", "mistral", "gemma", "gemma2", "gemma3_text", "phi", "phi3"]


def export(model: Any, folder: Path) -> list[str]:
    return export_for_client("genai", model, {"input_ids": prompt(6)}, folder)


def in_genai(folder: Path, rows: list[list[int]], new_tokens: int = NEW_TOKENS, **options: Any) -> list[list[int]]:
    """What it appends to each row; shorter rows are padded at their end, as its own tokenizer does."""
    model = og.Model(str(folder))
    longest = max(map(len, rows))
    params = og.GeneratorParams(model)
    params.set_search_options(max_length=longest + new_tokens, batch_size=len(rows), **options)
    generator = og.Generator(model, params)
    generator.append_tokens(np.array([row + [0] * (longest - len(row)) for row in rows], dtype=np.int32))
    while not generator.is_done():
        generator.generate_next_token()
    return [generator.get_sequence(i)[longest:].tolist() for i in range(len(rows))]


@pytest.mark.parametrize("name", FAMILIES)
def test_it_generates_the_tokens_of_eager_pytorch(name: str, tmp_path: Path) -> None:
    model = built(row_of(name))
    export(model, tmp_path)
    assert read_json(tmp_path / "genai_config.json")["model"]["type"] == name
    for length, seed in ((9, 1), (1, 2)):
        ids = prompt(length, seed)
        [got] = in_genai(tmp_path, ids.tolist())
        assert until_end(got, model) == generated(model, input_ids=ids)[0]


@pytest.mark.parametrize("name", [*FAMILIES, "qwen2_moe", "gpt_neox", "opt", "codegen"])
def test_weights_in_4_bits_give_the_tokens_of_load(name: str, tmp_path: Path) -> None:
    model = built(row_of(name))
    model.generation_config.no_repeat_ngram_size = 0
    how = {"dtype": "int4", "quantization": {"block_size": 16}}
    config = OnnxConfig(operators="onnxruntime", last_logits=True, **how)
    export_for_client("genai", model, {"input_ids": prompt(6)}, tmp_path, config)
    assert "com.microsoft.MatMulNBits" in Artifact(tmp_path / "model.onnx").summary["operators"]
    loaded = modelport.load(tmp_path)
    for length, seed in ((9, 1), (1, 2)):
        ids = prompt(length, seed)
        want = loaded.generate(ids, max_new_tokens=NEW_TOKENS, min_new_tokens=NEW_TOKENS, do_sample=False)
        [got] = in_genai(tmp_path, ids.tolist(), min_length=length + NEW_TOKENS)
        assert got == want[0, length:].tolist()


@pytest.mark.parametrize("name", ["gpt_neox", "bloom", "opt", "gptj", "codegen", "dbrx"])
def test_a_model_type_that_it_does_not_know_runs_as_a_decoder(name: str, tmp_path: Path) -> None:
    model = built(row_of(name))
    export(model, tmp_path)
    assert read_json(tmp_path / "genai_config.json")["model"]["type"] == "decoder"
    ids = prompt(7, 3)
    [got] = in_genai(tmp_path, ids.tolist())
    assert until_end(got, model) == generated(model, input_ids=ids)[0]


def test_the_installed_version_knows_every_model_type_of_the_table(tmp_path: Path) -> None:
    export(built(row_of("llama")), tmp_path)
    config = read_json(tmp_path / "genai_config.json")
    for kind in MODEL_TYPES:
        config["model"]["type"] = kind
        (tmp_path / "genai_config.json").write_text(json.dumps(config))
        assert og.Model(str(tmp_path)).type == kind
    config["model"]["type"] = "none of them"
    (tmp_path / "genai_config.json").write_text(json.dumps(config))
    with pytest.raises(RuntimeError, match="Unsupported model_type"):
        og.Model(str(tmp_path))


def test_logits_of_the_last_token_are_enough_for_one_row(tmp_path: Path) -> None:
    model = built(row_of("llama"))
    export_for_client("genai", model, {"input_ids": prompt(6)}, tmp_path, {"num_logits_to_keep": 1})
    [got] = in_genai(tmp_path, prompt(9, 1).tolist())
    assert until_end(got, model) == generated(model, input_ids=prompt(9, 1))[0]


@pytest.mark.parametrize("name", ["llama", "qwen3", "gemma", "phi"])
def test_rows_of_a_batch_may_differ_in_length(name: str, tmp_path: Path) -> None:
    model = built(row_of(name))
    model.generation_config.no_repeat_ngram_size = 0  # it would take the padding for text
    export(model, tmp_path)
    rows = [prompt(9, 4), prompt(5, 5)]
    got = in_genai(tmp_path, [row[0].tolist() for row in rows])
    want = [generated(model, input_ids=row)[0] for row in rows]
    assert [until_end(tokens, model) for tokens in got] == want


def test_beams_share_a_cache_in_place(tmp_path: Path) -> None:
    model = built(row_of("qwen3"))
    model.generation_config.no_repeat_ngram_size = 0
    export(model, tmp_path)
    assert read_json(tmp_path / "genai_config.json")["search"]["past_present_share_buffer"]
    ids = prompt(9, 6)
    settings = {"num_beams": 3, "early_stopping": True, "length_penalty": 1.0}
    want = model.generate(ids, max_new_tokens=8, min_new_tokens=8, do_sample=False, **settings)
    assert in_genai(tmp_path, ids.tolist(), 8, min_length=17, **settings) == want[:, 9:].tolist()


@pytest.mark.parametrize("bits", [4, 8])
def test_weights_in_few_bits_run(bits: int, tmp_path: Path) -> None:
    """The same tokens as in `modelport.load`: what few bits change is measured elsewhere."""
    model = built(row_of("qwen3"))
    quantization = {"bits": bits, "block_size": 16}
    config = {"operators": "onnxruntime", "last_logits": True, "quantization": quantization}
    export_for_client("genai", model, {"input_ids": prompt(6)}, tmp_path, config)
    operators = Artifact(tmp_path / "model.onnx").summary["operators"]
    assert operators["com.microsoft.MatMulNBits"] == 9 and "com.microsoft.GatherBlockQuantized" in operators
    ids = prompt(9, 1)
    loaded = modelport.load(tmp_path)
    want = loaded.generate(ids, max_new_tokens=8, min_new_tokens=8, do_sample=False)
    assert in_genai(tmp_path, ids.tolist(), 8, min_length=17)[0] == want[0, 9:].tolist()


def test_it_searches_as_the_generation_config_says(tmp_path: Path) -> None:
    model = built(row_of("llama"))
    plain = generated(model, input_ids=prompt(9, 6))
    model.generation_config.repetition_penalty = 1.8
    export(model, tmp_path)
    want = generated(model, input_ids=prompt(9, 6))
    assert want != plain, "the penalty makes no difference on this prompt"
    assert in_genai(tmp_path, prompt(9, 6).tolist()) == want


def test_text_goes_in_and_comes_out_through_its_own_tokenizer(tmp_path: Path) -> None:
    tokenizer = save_tokenizer(tmp_path)
    model = built(row_of("llama", vocab_size=len(tokenizer)))
    assert export(model, tmp_path) == []
    text = "the lazy dog, quick!"
    ids = tokenizer(text, return_tensors="pt").input_ids
    theirs = og.Tokenizer(og.Model(str(tmp_path)))
    assert theirs.encode(text).tolist() == ids[0].tolist()
    assert theirs.decode(theirs.encode(text)) == text
    [got] = in_genai(tmp_path, [theirs.encode(text).tolist()])
    assert until_end(got, model) == generated(model, input_ids=ids)[0]


def test_a_text_may_come_in_pieces(tmp_path: Path) -> None:
    """Several tokens after a past that is there: neither a first step nor a single token."""
    model = built(row_of("qwen3"))
    export(model, tmp_path)
    session = og.Model(str(tmp_path))
    params = og.GeneratorParams(session)
    params.set_search_options(max_length=10 + NEW_TOKENS)
    generator = og.Generator(session, params)
    pieces = [prompt(6, 7), prompt(4, 8)]
    for piece in pieces:
        generator.append_tokens(piece.numpy().astype(np.int32))
    while not generator.is_done():
        generator.generate_next_token()
    got = generator.get_sequence(0)[10:].tolist()
    assert until_end(got, model) == generated(model, input_ids=torch.cat(pieces, dim=1))[0]


@pytest.fixture(scope="module")
def whisper(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    """Exported once: the only length that it takes is long."""
    folder = tmp_path_factory.mktemp("whisper")
    tokenizer, extractor = save_tokenizer(folder), WhisperFeatureExtractor()
    extractor.save_pretrained(folder)
    sizes = {"max_source_positions": 1500, "num_mel_bins": 80}
    model = built(row_of("whisper", vocab_size=len(tokenizer), **sizes))
    sound = torch.randn(1, 80, 3000, generator=torch.Generator().manual_seed(1))
    export_for_client("genai", model, {"input_features": sound}, folder)
    return model, folder


def test_whisper_writes_down_what_eager_pytorch_writes_down(whisper: tuple[Any, Path]) -> None:
    model, folder = whisper
    sound = torch.randn(2, model.config.num_mel_bins, 3000, generator=torch.Generator().manual_seed(0))
    session = og.Model(str(folder))
    params = og.GeneratorParams(session)
    params.set_search_options(max_length=1 + NEW_TOKENS, batch_size=2)
    generator = og.Generator(session, params)
    given = og.NamedTensors()
    given["input_features"] = og.Tensor(sound.numpy())
    given["input_ids"] = og.Tensor(np.full((2, 1), model.config.decoder_start_token_id, dtype=np.int32))
    generator.set_inputs(given)
    while not generator.is_done():
        generator.generate_next_token()
    got = [until_end(generator.get_sequence(i)[1:].tolist(), model) for i in range(2)]
    assert got == generated(model, input_features=sound)


def test_whisper_takes_a_sound_file(whisper: tuple[Any, Path], tmp_path: Path) -> None:
    seconds = np.arange(32000) / 16000
    sound = 0.4 * np.sin(2 * np.pi * 440 * seconds) + 0.2 * np.sin(2 * np.pi * 1200 * seconds**2)
    features = WhisperFeatureExtractor()(sound, sampling_rate=16000, return_tensors="pt").input_features
    with wave.open(str(tmp_path / "sound.wav"), "wb") as file:
        file.setparams((1, 2, 16000, 0, "NONE", ""))
        file.writeframes((sound * 32767).astype(np.int16).tobytes())
    processor = og.Model(str(whisper[1])).create_multimodal_processor()
    given = processor(["</s>"], audios=og.Audios.open(str(tmp_path / "sound.wav")))
    theirs = given["audio_features"].as_numpy()
    # Samples of 16 bits, and a transform of its own: close, not equal.
    assert theirs.shape == tuple(features.shape)
    assert float(np.abs(theirs - features.numpy()).mean()) < 0.01
