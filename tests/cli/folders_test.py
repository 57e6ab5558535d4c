"""Folders of exports: what goes with a new one, what a linked one notices, and results that cannot be printed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import tiny_checkpoints
import tiny_generators
import torch
from cli_test import call, refused, tree

import modelport
from modelport import ExportError
from modelport.artifacts.artifact import PARTS, Artifact, find_models
from modelport.contracts.transformers_js_classes import WRITTEN


@pytest.fixture(scope="module")
def t5(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checkpoints") / "t5"
    tiny_generators.made(tiny_generators.t5).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def qwen3(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checkpoints") / "qwen3"
    tiny_generators.made(tiny_generators.DECODERS["qwen3"]).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_checkpoints.save("bert", tmp_path_factory.mktemp("checkpoints"))


# --- old parts go -----------------------------------------------------------------------------------------------------


def test_parts_of_an_older_model_go_also_where_the_user_has_a_folder(t5: Path, qwen3: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert call("export", "onnx", t5, out, "--no-check", "-q") == 0
    (out / "notes").mkdir()
    (out / "notes" / "a.txt").write_text("mine")
    assert call("export", "onnx", qwen3, out, "-q") == 0
    assert [file.name for file in find_models(out)] == ["model.onnx"]
    assert type(modelport.load(out)).__name__ == "Qwen3ForCausalLM"
    assert (out / "notes" / "a.txt").read_text() == "mine"


def test_a_client_s_folder_and_a_plain_one_replace_each_other(qwen3: Path, tmp_path: Path) -> None:
    out, plain = tmp_path / "out", tmp_path / "plain"
    assert call("export", "onnx", qwen3, plain, "--no-check", "-q") == 0
    assert call("export", "onnx", qwen3, out, "--no-check", "-q", "--for", "transformers.js") == 0
    assert (out / "onnx" / "model.onnx").exists()
    assert call("export", "onnx", qwen3, out, "--no-check", "-q", "--for", "genai") == 0
    assert (out / "genai_config.json").exists() and not (out / "onnx").exists()
    assert call("export", "onnx", qwen3, out, "--no-check", "-q") == 0
    assert tree(out) == tree(plain)


def test_parts_that_python_saves_replace_those_of_another_model(tmp_path: Path) -> None:
    (tmp_path / "decoder_model_merged.onnx").write_text("old")
    (tmp_path / "video_encoder.onnx_data").write_text("old")
    (tmp_path / "notes.txt").write_text("mine")
    tiny_generators.export_decoder(tiny_generators.made(tiny_generators.DECODERS["llama"]), tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {
        ".modelport.json", "config.json", "generation_config.json", "model.onnx", "model.onnx_data", "notes.txt",
    }  # fmt: skip


def test_every_part_that_an_export_writes_is_known_as_one() -> None:
    from modelport.contracts import genai_whisper
    from modelport.generation import encoders

    written = {name for sessions in WRITTEN for name in sessions.files} | set(encoders._FILES.values())
    assert written | {genai_whisper.PROCESSOR, "decoder_model", "decoder_with_past_model"} <= set(PARTS)


def test_a_model_beside_others_takes_its_old_weights_with_it(tmp_path: Path) -> None:
    model = torch.nn.Linear(300, 300).eval()
    program = modelport.OnnxExporter().export(model, {"input": torch.ones(1, 300)})
    (tmp_path / "m.onnx_data.md").write_text("mine")
    program.save(tmp_path / "m.onnx", shard_bytes=100)
    program.save(tmp_path / "other.onnx")
    program.save(tmp_path / "m.onnx")
    names = {"m.onnx", "m.onnx_data", "m.onnx_data.md", "other.onnx", "other.onnx_data"}
    assert {path.name for path in tmp_path.iterdir()} == names
    assert [file.name for file in program.files] == ["m.onnx", "m.onnx_data"]
    (tmp_path / "one.pt2").write_text("old")
    modelport.DynamoExporter().export(model, {"input": torch.ones(1, 300)}).save(tmp_path / "one.pt2")
    assert {path.name for path in tmp_path.iterdir()} == names | {"one.pt2"}


# --- linked weights ---------------------------------------------------------------------------------------------------


@pytest.fixture
def linked(bert: Path, tmp_path: Path) -> tuple[Path, Path]:
    """A checkpoint of our own and a folder that points into it."""
    shutil.copytree(bert, tmp_path / "bert")
    assert call("export", "onnx", tmp_path / "bert", tmp_path / "out", "--weights", "link", "--no-check", "-q") == 0
    return tmp_path / "bert" / "model.safetensors", tmp_path / "out"


def _other_weights(file: Path) -> None:
    """As large as before, written over what is there."""
    from safetensors.torch import load, save

    data = save({name: weight + 1 for name, weight in load(file.read_bytes()).items()}, {"format": "pt"})
    with open(file, "r+b") as opened:
        opened.write(data)


def _one_byte(file: Path) -> None:
    with open(file, "r+b") as opened:
        opened.seek(file.stat().st_size * 2 // 3)
        opened.write(b"\x07\x07\x07\x07")


def _under_the_old_date(file: Path) -> None:
    before = file.stat()
    _other_weights(file)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize("change", [_other_weights, _one_byte, _under_the_old_date])
def test_a_checkpoint_that_was_overwritten_is_an_error(linked: Any, change: Any, capsys: Any) -> None:
    file, out = linked
    change(file)
    with pytest.raises(ExportError, match=r"E0103.*overwritten") as caught:
        modelport.load(out)
    assert "model.onnx_data" in str(caught.value) and "--weights copy" in str(caught.value)
    assert "overwritten" in refused(capsys, "check", out)
    assert "overwritten" in refused(capsys, "run", out, "hello")


def test_linked_weights_may_be_touched_copied_and_replaced_beside(linked: Any, tmp_path: Path) -> None:
    file, out = linked
    inputs = dict.fromkeys(("input_ids", "attention_mask", "token_type_ids"), torch.ones(1, 4, dtype=torch.long))
    before = modelport.load(out)(**inputs)["logits"]
    os.utime(file)
    shutil.copytree(out, tmp_path / "copy")
    file.with_name("new").write_bytes(file.read_bytes())
    _other_weights(file.with_name("new"))
    file.with_name("new").replace(file)  # the artifact keeps the file that it points into
    for folder in (out, tmp_path / "copy"):
        assert torch.equal(modelport.load(folder)(**inputs)["logits"], before)


def test_weights_that_lie_beside_a_linked_model_are_verified_too(bert: Path, tmp_path: Path) -> None:
    shutil.copytree(bert, tmp_path / "bert")
    out = tmp_path / "bert" / "model.onnx"
    assert call("export", "onnx", tmp_path / "bert", out, "--weights", "link", "--no-check", "-q") == 0
    assert [row["file"] for row in Artifact(out).weight_files()] == ["model.safetensors"]
    assert call("check", out, "-q") == 0
    _one_byte(tmp_path / "bert" / "model.safetensors")
    with pytest.raises(ExportError, match="overwritten"):
        modelport.load(out)


# --- the rest ---------------------------------------------------------------------------------------------------------


def test_an_artifact_knows_its_checkpoint_from_wherever_it_is(bert: Path, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(bert.parent)
    assert call("export", "onnx", bert.name, tmp_path / "out", "--no-check", "-q") == 0
    (tmp_path / "out").rename(tmp_path / "moved")
    monkeypatch.chdir(tmp_path)
    assert Artifact(tmp_path / "moved" / "model.onnx").note("source") == str(bert)
    assert call("check", "moved", "-q") == 0


@pytest.mark.parametrize("arguments", [("inspect",), ("inspect", "--json"), ("check",), ("check", "--json")])
def test_a_result_that_cannot_be_printed_is_no_success(arguments: tuple[str, ...], bert: Path, tmp_path: Path) -> None:
    assert call("export", "onnx", bert, tmp_path / "out", "--no-check", "-q") == 0
    _printed_to_a_full_disk(arguments[0], str(tmp_path / "out"), *arguments[1:])


@pytest.mark.parametrize("flags", [(), ("--json",)])
def test_an_export_that_cannot_say_so_is_no_success(flags: tuple[str, ...], bert: Path, tmp_path: Path) -> None:
    _printed_to_a_full_disk("export", "onnx", str(bert), str(tmp_path / "out"), "--no-check", *flags)


@pytest.mark.parametrize("words", [("--help",), ("--version",), ("export", "onnx", "--help")])
def test_help_that_cannot_be_printed_is_no_success(words: tuple[str, ...]) -> None:
    _printed_to_a_full_disk(*words)


def _printed_to_a_full_disk(*words: str) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "modelport", *words], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode not in (0, 1), done.stderr
    assert "No space left on device" in done.stderr


def test_the_list_of_files_is_readable(bert: Path, tmp_path: Path) -> None:
    assert call("export", "onnx", bert, tmp_path / "out", "--no-check", "-q") == 0
    listed = json.loads((tmp_path / "out" / ".modelport.json").read_text())["files"]
    assert {*listed, ".modelport.json"} == {path.name for path in (tmp_path / "out").iterdir()}
