"""`modelport.load`, `run` and `check` on ExecuTorch programs that generate."""

from __future__ import annotations

import copy
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from dequantized_models import EMBEDDING, LINEAR, with_dequantized_weights
from executorch_decoders import generated, tiny
from executorch_runner import BOS, EOS, ids_of, write_tokenizer

import modelport
from modelport import ExecutorchExporter, ExportError
from modelport.cli import main

pytest.importorskip("executorch")

PROMPT, ROOM = "helloWorld7", 40


def call(*args: object) -> int:
    try:
        return main([str(arg) for arg in args])
    except SystemExit as left:  # argparse
        return int(left.code or 0)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checkpoint")
    tiny("qwen3").save_pretrained(folder)
    write_tokenizer(folder / "tokenizer.json")
    names = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "</s>", "bos_token": "<s>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(names))
    return folder


@pytest.fixture(scope="module")
def exported(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("exported") / "out"
    assert call("export", "executorch", checkpoint, out, "--max_seq_len", ROOM, "--dims", "seq=1:6") == 0
    return out


def ids(text: str = PROMPT) -> torch.Tensor:
    return torch.tensor([ids_of(text)])


def tokens(model: Any, prompt: torch.Tensor, **settings: Any) -> list[int]:
    given = {"max_new_tokens": 12, "do_sample": False, "pad_token_id": EOS} | settings
    return model.generate(prompt, **given)[0].tolist()


def test_what_is_loaded_generates_as_the_model_does(exported: Path) -> None:
    model, loaded = tiny("qwen3"), modelport.load(exported)
    assert type(loaded).__name__ == "Qwen3ForCausalLM"
    for text in (PROMPT, "a", "another1"):
        assert tokens(loaded, ids(text)) == tokens(model, ids(text))
    torch.manual_seed(3)
    want = tokens(model, ids(), do_sample=True, temperature=1.5)
    torch.manual_seed(3)
    assert tokens(loaded, ids(), do_sample=True, temperature=1.5) == want


def test_texts_that_take_turns_do_not_mix(exported: Path) -> None:
    model, loaded = tiny("qwen3"), modelport.load(exported)

    def in_turns(which: Any) -> list[torch.Tensor]:
        settings = {"max_new_tokens": 4, "do_sample": False, "pad_token_id": EOS, "return_dict_in_generate": True}
        first, second = (which.generate(ids(text), **settings) for text in ("first1", "second22"))
        branch = copy.deepcopy(first.past_key_values)
        more = [(first.sequences, first.past_key_values), (second.sequences, second.past_key_values)]
        more.append((torch.cat([first.sequences, ids("z")], 1), branch))
        return [which.generate(text, past_key_values=cache, **settings).sequences for text, cache in more]

    for got, want in zip(in_turns(loaded), in_turns(model), strict=True):
        assert torch.equal(got, want)


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"inputs": ids("a" * (ROOM + 1))}, f"the prompt has {ROOM + 1} tokens, and the cache of the program holds"),
        ({"inputs": ids(), "max_new_tokens": 50}, "with 50 new ones there are more than the 40 of the cache"),
        ({"inputs": ids().expand(2, -1)}, "one text at a time, and there are 2"),
        ({"inputs": ids(), "num_beams": 2}, "one text at a time, and there are 2"),
        (
            {"inputs": ids(), "attention_mask": torch.tensor([[0] + [1] * 10])},
            "attention_mask hides",
        ),
    ],
)
def test_what_the_program_cannot_do_is_refused_before_it_runs(exported: Path, given: Any, what: str) -> None:
    loaded = modelport.load(exported)
    with pytest.raises(ExportError, match=what):
        loaded.generate(**{"max_new_tokens": 3, "pad_token_id": EOS} | given)


def test_a_length_that_nobody_asked_for_is_cut_to_the_cache(exported: Path) -> None:
    loaded = modelport.load(exported)
    assert loaded.generate(ids("a" * (ROOM - 2)), do_sample=False, pad_token_id=EOS).shape[1] <= ROOM


def test_a_program_for_the_next_token_without_a_cache_generates_too(tmp_path: Path) -> None:
    model = tiny("mamba", state_size=4)
    ExecutorchExporter().export_for_generation(model, config={"max_seq_len": 32}).save(tmp_path)
    assert tokens(modelport.load(tmp_path), ids()) == tokens(model, ids())


def test_the_command_line_exports_runs_and_checks(
    checkpoint: Path, exported: Path, tmp_path: Path, capsys: Any
) -> None:
    capsys.readouterr()
    assert call("run", exported, PROMPT, "--max-new-tokens", 12) == 0
    said = ids_of(capsys.readouterr().out.strip())
    assert said == [token for token in generated(tiny("qwen3"), 12) if token not in (BOS, EOS)]
    assert call("run", exported, "a" * (ROOM + 5)) == 2
    assert f"the cache of the program holds {ROOM}" in capsys.readouterr().err
    assert call("check", exported, "--model", checkpoint) == 0
    assert "tokens" in capsys.readouterr().out
    file = tmp_path / "alone.pte"
    flags = ("--max_seq_len", 24, "--use_custom_sdpa", "--use_custom_kv_cache", "--dtype", "float16", "--json")
    assert call("export", "executorch", "-m", checkpoint, "-o", file, *flags) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["ok"] and told["check"]["ok"] and list(told["files"]) == [str(file)]
    assert told["constant_methods"]["get_dtype"] == 5 and told["constant_methods"]["use_sdpa_with_kv_cache"]


def test_weights_stay_in_their_files_while_a_decoder_is_exported(checkpoint: Path, recwarn: Any) -> None:
    parts = ExecutorchExporter().export_for_generation(checkpoint, config={"max_seq_len": 16})
    assert parts["forward"].captured.source == checkpoint
    assert not [warning for warning in recwarn if "the weights are" in str(warning.message)]


def test_a_damaged_program_is_refused_at_load(exported: Path, tmp_path: Path) -> None:
    shutil.copytree(exported, tmp_path / "out")
    program = tmp_path / "out" / "model.pte"
    program.write_bytes(program.read_bytes()[:700])
    with pytest.raises(ExportError, match=r"model\.pte"):
        modelport.load(tmp_path / "out")


@pytest.fixture(scope="module")
def half_checkpoint(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("half") / "model"
    shutil.copytree(checkpoint, folder)
    tiny("qwen3").to(torch.bfloat16).save_pretrained(folder)
    return folder


def test_a_checkpoint_in_bf16_is_computed_by_xnnpack_with_the_weights_that_are_asked_for(
    half_checkpoint: Path, tmp_path: Path, capsys: Any
) -> None:
    bits = [
        "--recipe",
        "xnnpack",
        "--qlinear",
        "8w",
        "--qembedding",
        "8w",
        "--use_custom_sdpa",
        "--use_custom_kv_cache",
    ]
    assert call("export", "executorch", half_checkpoint, tmp_path / "out", "--max_seq_len", ROOM, "--json", *bits) == 0
    told = json.loads(capsys.readouterr().out)
    assert any("exported in fp32" in note for note in told["notes"])
    assert any("fewer bits change values" in note for note in told["notes"])
    model = tiny("qwen3").to(torch.bfloat16).float()
    want = with_dequantized_weights(model, LINEAR["8w"], EMBEDDING["8w"])
    assert tokens(modelport.load(tmp_path / "out"), ids()) == tokens(want, ids())


def test_weights_are_read_only_when_they_are_written(half_checkpoint: Path) -> None:
    config = {"max_seq_len": ROOM, "recipe": "xnnpack", "qlinear": "8w"}
    parts = ExecutorchExporter().export_for_generation(half_checkpoint, config=config)
    assert parts.model.dtype == torch.float32
    assert not parts.model.get_input_embeddings().weight.any()  # memory without contents
