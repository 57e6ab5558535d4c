"""`modelport export openvino`: a folder as optimum-intel has it, checked, and what other commands make of it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import tiny_checkpoints
import torch
from tiny_generators import DECODERS, made, save_tokenizer

from modelport.cli import main

pytest.importorskip("openvino")


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of most checkpoints' type."""
    folder = tmp_path_factory.mktemp("checkpoint")
    made(DECODERS["llama"]).to(torch.bfloat16).save_pretrained(folder)
    save_tokenizer(folder)
    return folder


@pytest.fixture(scope="module")
def exported(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("out") / "llama"
    assert main(["export", "openvino", str(checkpoint), str(out)]) == 0
    return out


def test_the_folder_has_what_optimum_intel_looks_for(exported: Path) -> None:
    names = {file.name for file in exported.iterdir()}
    assert {"openvino_model.xml", "openvino_model.bin", "config.json", "generation_config.json"} <= names
    assert {"tokenizer.json", "tokenizer_config.json"} <= names
    assert not [name for name in names if name.startswith(".onnx") or name.endswith(".onnx")]


def test_check_inspect_and_run_know_the_folder(exported: Path, capsys: Any) -> None:
    assert main(["check", str(exported)]) == 0
    assert "tokens" in capsys.readouterr().out
    assert main(["inspect", str(exported), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in told["inputs"]][-1] == "beam_idx" and len(told["states"]) == 4
    assert main(["inspect", str(exported)]) == 0
    assert "a model for OpenVINO" in capsys.readouterr().out
    assert main(["inspect", str(exported), "--html", str(exported.parent / "page.html")]) == 2
    assert "this is for ONNX" in capsys.readouterr().err
    assert main(["run", str(exported), "w7 w8 w9", "--max-new-tokens", "4", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["new_tokens"] == 4


def test_a_model_that_is_called_once_is_compared_at_four_sizes(tmp_path: Path, capsys: Any) -> None:
    bert = tiny_checkpoints.save("bert", tmp_path)
    assert main(["export", "openvino", str(bert), str(tmp_path / "out"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {row["size"] for row in told["check"]["rows"]} == {"example", "batch 1", "longer", "odd"}
    assert sorted(Path(name).name for name in told["files"]) == ["openvino_model.bin", "openvino_model.xml"]
    assert main(["check", str(tmp_path / "out")]) == 0


def test_an_export_of_another_format_is_not_replaced(exported: Path, checkpoint: Path, capsys: Any) -> None:
    before = sorted(file.name for file in exported.iterdir())
    assert main(["export", "onnx", str(checkpoint), str(exported)]) == 2
    assert "an export of another format" in capsys.readouterr().err
    assert sorted(file.name for file in exported.iterdir()) == before


def test_without_openvino_the_message_says_what_to_install(
    checkpoint: Path, tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "openvino", None)  # as Python has it where it is not installed
    assert main(["export", "openvino", str(checkpoint), str(tmp_path / "out")]) == 2
    assert "pip install 'openvino" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_out_is_a_folder(checkpoint: Path, tmp_path: Path, capsys: Any) -> None:
    assert main(["export", "openvino", str(checkpoint), str(tmp_path / "model.xml")]) == 2
    assert f"name a folder: {tmp_path / 'model'}" in capsys.readouterr().err
