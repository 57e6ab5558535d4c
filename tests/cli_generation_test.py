"""`modelport export onnx` of models that generate: what is in the folder, what is checked, what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import tiny_checkpoints
from transformers import T5Config, T5ForConditionalGeneration

from modelport.artifact import Artifact
from modelport.cli import main


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("generative")
    for name, make in tiny_checkpoints.MAKERS.items():
        make().save_pretrained(folder / name)
    config = T5Config(vocab_size=61, d_model=32, d_kv=8, d_ff=48, num_layers=1, num_heads=4, decoder_start_token_id=0)
    T5ForConditionalGeneration(config).save_pretrained(folder / "t5")
    return folder


def call(*args: Any) -> int:
    return main([str(arg) for arg in args])


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_a_decoder_is_one_file_with_a_cache_and_is_checked_by_what_it_generates(
    checkpoints: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("export", "onnx", checkpoints / "llama", tmp_path / "out", "--json") == 0
    data = json.loads(capsys.readouterr().out)
    assert {row["output"] for row in data["check"]["rows"]} == {"logits", "tokens"}
    assert "past_key_values.0.key" in data["inputs"]["model"]
    assert files(tmp_path / "out") >= {"model.onnx", "model.onnx_data", "config.json", "generation_config.json"}
    assert call("check", tmp_path / "out") == 0


def test_an_encoder_decoder_is_two_files(checkpoints: Path, tmp_path: Path) -> None:
    assert call("export", "onnx", checkpoints / "t5", tmp_path / "out", "-q") == 0
    assert files(tmp_path / "out") >= {"encoder_model.onnx", "decoder_model_merged.onnx"}
    assert call("check", tmp_path / "out", "-q") == 0


def test_parts_of_an_older_export_do_not_stay(checkpoints: Path, tmp_path: Path) -> None:
    assert call("export", "onnx", checkpoints / "t5", tmp_path / "out", "-q", "--no-check") == 0
    (tmp_path / "out/notes.txt").write_text("mine")
    assert call("export", "onnx", checkpoints / "llama", tmp_path / "out", "-q", "--no-check") == 0
    assert {name for name in files(tmp_path / "out") if ".onnx" in name} == {"model.onnx", "model.onnx_data"}
    assert (tmp_path / "out/notes.txt").read_text() == "mine"


@pytest.mark.parametrize("flags", [("--task", "text-generation"), ("--weights", "link")])
def test_a_task_without_past_or_linked_weights_give_the_plain_model(
    flags: tuple[str, str], checkpoints: Path, tmp_path: Path
) -> None:
    assert call("export", "onnx", checkpoints / "llama", tmp_path / "out", "-q", "--no-check", *flags) == 0
    inputs = [row["name"] for row in Artifact(tmp_path / "out/model.onnx").summary["inputs"]]
    assert not [name for name in inputs if name.startswith("past")]


def test_a_folder_for_transformers_js_has_its_layout_and_can_be_written_again(
    checkpoints: Path, tmp_path: Path
) -> None:
    for _ in range(2):
        assert call("export", "onnx", checkpoints / "llama", tmp_path / "out", "-q", "--for", "transformers.js") == 0
        assert files(tmp_path / "out") >= {"onnx/model.onnx", "onnx/model.onnx_data", "config.json"}
        assert "transformers.js_config" in json.loads((tmp_path / "out/config.json").read_text())


def test_a_client_that_does_not_know_the_model_is_named_before_anything_is_written(
    checkpoints: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("export", "onnx", checkpoints / "t5", tmp_path / "out", "--for", "genai") == 2
    assert "way out" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_what_generates_is_a_folder(checkpoints: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("export", "onnx", checkpoints / "llama", tmp_path / "out.onnx", "--for", "genai") == 2
    assert "what generates is a folder" in capsys.readouterr().err


def test_a_task_with_past_for_a_model_that_cannot_generate_is_refused(
    checkpoints: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ("--task", "feature-extraction-with-past")
    assert call("export", "onnx", checkpoints / "bert", tmp_path / "out", *flags) == 2
    assert "cannot generate" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
