"""`modelport export onnx` of models that generate: what is in the folder, what is checked, what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import tiny_checkpoints
import torch
from tiny_models import tiny
from transformers import PreTrainedModel

import modelport
from modelport.artifacts.artifact import Artifact
from modelport.cli import main
from modelport.lazy.checkpoint_weights import CheckpointWeights, NeedsValues


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("generative")
    for name, make in tiny_checkpoints.MAKERS.items():
        make().save_pretrained(folder / name)
    tiny("t5", num_layers=1).save_pretrained(folder / "t5")
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


def test_a_task_without_past_gives_the_plain_model(checkpoints: Path, tmp_path: Path) -> None:
    flags = ("-q", "--no-check", "--task", "text-generation")
    assert call("export", "onnx", checkpoints / "llama", tmp_path / "out", *flags) == 0
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


def test_a_number_of_logits_is_for_what_generates(
    checkpoints: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, few = checkpoints / "llama", ("--num-logits-to-keep", "1", "--no-check")
    assert call("export", "onnx", folder, tmp_path / "out", *few) == 0
    logits = next(o for o in Artifact(tmp_path / "out" / "model.onnx").summary["outputs"] if o["name"] == "logits")
    assert logits["shape"][1] == "1"
    assert call("export", "onnx", folder, tmp_path / "plain.onnx", *few) == 2
    assert "--num-logits-to-keep is for a model that generates" in capsys.readouterr().err
    assert not (tmp_path / "plain.onnx").exists()


def test_genai_gets_the_logits_that_it_reads_and_all_where_they_are_asked_for(
    checkpoints: Path, tmp_path: Path
) -> None:
    flags = ("-q", "--for", "genai", "--no-check")
    for more, wanted in (((), "1"), (("--num-logits-to-keep", "0"), "sequence_length")):
        assert call("export", "onnx", checkpoints / "llama", tmp_path / "out", *flags, *more) == 0
        artifact = Artifact(tmp_path / "out" / "model.onnx")
        logits = next(row for row in artifact.summary["outputs"] if row["name"] == "logits")
        assert logits["shape"][1] == wanted and artifact.gives_last_logits == (not more)


def test_weights_for_transformers_js_are_not_linked(
    checkpoints: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ("--for", "transformers.js", "--weights", "link")
    assert call("export", "onnx", checkpoints / "llama", tmp_path / "out", *flags) == 2
    assert "--weights copy" in capsys.readouterr().err
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


def inodes(folder: Path) -> set[int]:
    return {path.stat().st_ino for path in folder.iterdir()}


@pytest.mark.parametrize("shards", [1, 3])
def test_linked_weights_go_with_a_cache_and_nothing_is_copied(
    shards: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.manual_seed(0)
    model = tiny("llama")
    size = sum(p.nbytes for p in model.parameters())
    model.save_pretrained(tmp_path / "llama", max_shard_size=size if shards == 1 else size // 2)
    assert len(list((tmp_path / "llama").glob("*.safetensors"))) == shards
    assert call("export", "onnx", tmp_path / "llama", tmp_path / "out", "--weights", "link", "--json") == 0
    data = json.loads(capsys.readouterr().out)
    assert "past_key_values.0.key" in data["inputs"]["model"]
    assert data["check"]["ok"]
    assert data["notes"] == []
    links = [path for path in (tmp_path / "out").iterdir() if path.stat().st_ino in inodes(tmp_path / "llama")]
    assert len(links) == shards
    assert sum(p.stat().st_size for p in (tmp_path / "out").iterdir() if p not in links) < size // 2
    prompt = {"input_ids": torch.tensor([[5, 6, 7, 8], [0, 9, 10, 11]])}
    prompt["attention_mask"] = (prompt["input_ids"] > 0).long()
    settings = {"max_new_tokens": 12, "do_sample": False}
    got = modelport.load(tmp_path / "out").generate(**prompt, **settings)
    assert got.tolist() == model.generate(**prompt, **settings).tolist()


@pytest.mark.parametrize("weights", ["link", "copy"])
def test_without_a_check_the_weights_of_a_decoder_are_neither_loaded_nor_read(
    weights: str, checkpoints: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: Any, **__: Any) -> None:
        raise AssertionError("the model is to be exported without its values")

    monkeypatch.setattr(PreTrainedModel, "from_pretrained", refused)
    monkeypatch.setattr(CheckpointWeights, "fill", refused)
    flags = ("--weights", weights, "--no-check", "-q")
    assert call("export", "onnx", checkpoints / "llama", tmp_path / "out", *flags) == 0
    assert call("check", tmp_path / "out", "-q") == 1  # which needs the model
    monkeypatch.undo()
    assert call("check", tmp_path / "out", "-q") == 0


def test_parts_of_an_encoder_decoder_point_into_the_checkpoint_too(checkpoints: Path, tmp_path: Path) -> None:
    assert call("export", "onnx", checkpoints / "t5", tmp_path / "out", "-q", "--weights", "link") == 0
    own = (checkpoints / "t5/model.safetensors").stat().st_ino
    for name in ("encoder_model", "decoder_model_merged"):
        assert (tmp_path / f"out/{name}.onnx_data").stat().st_ino == own


def test_converted_weights_keep_their_cache(checkpoints: Path, tmp_path: Path) -> None:
    flags = ("-q", "--no-check", "--dtype", "fp16", "--weights", "link")
    assert call("export", "onnx", checkpoints / "llama", tmp_path / "out", *flags) == 0
    inputs = {row["name"]: row["dtype"] for row in Artifact(tmp_path / "out/model.onnx").summary["inputs"]}
    assert inputs["past_key_values.0.key"] == "f16"


def test_a_checkpoint_that_nothing_can_point_into_is_refused_with_linked_weights(
    checkpoints: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def quantized(*_: Any) -> None:
        raise NeedsValues("the checkpoint is quantized")

    monkeypatch.setattr(CheckpointWeights, "__init__", quantized)
    assert call("export", "onnx", checkpoints / "llama", tmp_path / "out", "--weights", "link") == 2
    said = capsys.readouterr().err
    assert "the weights are loaded, because the checkpoint is quantized" in said
    assert "way out   copy the weights: --weights copy" in said
    assert not (tmp_path / "out").exists()
    assert call("export", "onnx", checkpoints / "llama", tmp_path / "out", "-q") == 0
