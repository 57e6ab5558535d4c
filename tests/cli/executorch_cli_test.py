"""`modelport export executorch` and what the other commands do with its files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import tiny_checkpoints
import torch

import modelport
from modelport.cli import main

pytest.importorskip("executorch")

CODE = """
import torch
from transformers import BertConfig, PreTrainedModel

class Scorer(PreTrainedModel):
    config_class = BertConfig

    def __init__(self, config):
        super().__init__(config)
        self.embed = torch.nn.Embedding(config.vocab_size, 16)
        self.down = torch.nn.Linear(16, 2)
        self.post_init()

    def forward(self, input_ids):
        return {"scores": torch.relu(self.down(self.embed(input_ids)))}
"""


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of its own code, whose operators every build of the runtime has."""
    folder = tmp_path_factory.mktemp("checkpoint")
    tiny_checkpoints.save_own_code("Scorer", CODE, folder)
    return folder


def call(*args: object) -> int:
    try:
        return main([str(arg) for arg in args])
    except SystemExit as left:  # argparse
        return int(left.code or 0)


def export(checkpoint: Path, out: Path, *more: object) -> int:
    return call("export", "executorch", checkpoint, out, "--trust-remote-code", *more)


def test_an_export_is_written_checked_told_and_read_by_the_other_commands(
    checkpoint: Path, tmp_path: Path, capsys: Any
) -> None:
    out = tmp_path / "out"
    assert export(checkpoint, out, "--dims", "batch=1:4") == 0
    said = capsys.readouterr()
    assert f"wrote {out / 'model.pte'}" in said.out and "arena" in said.out
    assert "limit: batch is 1 to 4" in said.out and "limit: seq is 1 to 24" in said.out
    assert "axis seq is at most 24: max_position_embeddings" in said.err
    assert (out / "config.json").exists()
    assert call("inspect", out) == 0
    shown = capsys.readouterr().out
    assert "input_ids: i64[batch <= 4, seq <= 24]" in shown and "aten::embedding.out" in shown
    assert call("inspect", out / "model.pte", "--json") == 0
    method = json.loads(capsys.readouterr().out)["methods"]["forward"]
    assert method["ranges"] == {"batch": [1, 4], "seq": [1, 24]} and method["arena_bytes"] > 0
    assert modelport.load(out)(input_ids=torch.ones(3, 9, dtype=torch.int64)).scores.shape == (3, 9, 2)
    assert call("run", out, "a prompt") == 2
    assert "a program that is called once" in capsys.readouterr().err


def test_json_tells_files_methods_and_limits(checkpoint: Path, tmp_path: Path, capsys: Any) -> None:
    assert export(checkpoint, tmp_path / "m.pte", "--disable_dynamic_shapes", "--json", "--batch", 1) == 0
    told = json.loads(capsys.readouterr().out)
    assert list(told["files"]) == [str(tmp_path / "m.pte")] and told["recipe"] == "portable"
    assert told["methods"]["forward"]["arena_bytes"] > 0 and told["check"]["ok"]


def test_a_failed_export_leaves_what_was_there(checkpoint: Path, tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "model.pte").write_text("mine")
    for more in (("--recipe", "vulkan"), ("--dims", "width=1:4")):
        assert export(checkpoint, tmp_path / "model.pte", *more) == 2
        assert (tmp_path / "model.pte").read_text() == "mine"
    told = capsys.readouterr().err
    assert "vulkan" in told and "width" in told


def test_one_folder_does_not_hold_exports_of_two_formats(checkpoint: Path, tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "model.onnx").write_text("mine")
    assert export(checkpoint, tmp_path) == 2
    assert "another format" in capsys.readouterr().err
    assert (tmp_path / "model.onnx").read_text() == "mine"


@pytest.mark.parametrize("dims", ["seq", "seq=a:b", "=1:2"])
def test_bounds_are_written_as_axis_and_sizes(dims: str, tmp_path: Path, capsys: Any) -> None:
    assert call("export", "executorch", "m", tmp_path, "--dims", dims) == 2
    assert "seq=1:2048" in capsys.readouterr().err


def test_static_sizes_and_bounds_exclude_each_other(tmp_path: Path, capsys: Any) -> None:
    assert call("export", "executorch", "m", tmp_path, "--disable_dynamic_shapes", "--dims", "seq=9") == 2
    assert "leave one of them out" in capsys.readouterr().err


def test_a_broken_file_is_refused_by_every_command(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "model.pte").write_bytes(b"no program")
    for command in ("inspect", "check"):
        assert call(command, tmp_path) == 2
        assert "E0103" in capsys.readouterr().err


def test_xnnpack_and_weights_in_fewer_bits(checkpoint: Path, tmp_path: Path, capsys: Any) -> None:
    out = tmp_path / "out"
    more = ("--recipe", "xnnpack", "--qlinear", "8w", "--qembedding", "8w", "--qembedding_group_size", "8")
    assert export(checkpoint, out, *more) == 0
    said = capsys.readouterr()
    assert "xnnpack" in said.out and "weights in fewer bits change values" in said.err
    assert call("inspect", out) == 0
    shown = capsys.readouterr().out
    assert "XnnpackBackend (2 nodes, " in shown and "quantized_decomposed::embedding_byte.out" in shown
    # A limit that no quantized weight keeps.
    assert export(checkpoint, tmp_path / "other", *more, "--atol", "1e-7") == 2
    assert export(checkpoint, tmp_path / "other", "--recipe", "xnnpack", "--qlinear", "8da4w") == 2
    assert "down.weight [2, 16] cannot be quantized with groups of 32" in capsys.readouterr().err
    assert export(checkpoint, tmp_path / "other", "--qlinear", "8w") == 2
    assert "--recipe xnnpack" in capsys.readouterr().err
    assert not (tmp_path / "other").exists()
