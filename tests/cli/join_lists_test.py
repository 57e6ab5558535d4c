"""Models whose result is a list with a tensor for each item, from the command line: `--join-lists` of every target."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import tiny_checkpoints
import torch

import modelport
from modelport.cli import main

CODE = """
import torch
from transformers import BertConfig, PreTrainedModel

class Sums(PreTrainedModel):
    config_class = BertConfig

    def __init__(self, config):
        super().__init__(config)
        self.embed = torch.nn.Embedding(config.vocab_size, 16)
        self.post_init()

    def forward(self, input_ids):
        return {"sums": [row.cumsum(0) for row in self.embed(input_ids)]}
"""


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checkpoint")
    tiny_checkpoints.save_own_code("Sums", CODE, folder)
    return folder


def exported(target: str, checkpoint: Path, out: Path, capsys: Any, *flags: str) -> list[str]:
    """Names of its outputs; values are compared by the command."""
    assert main(["export", target, str(checkpoint), str(out), "--trust-remote-code", "--json", *flags]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["check"]["ok"] and data["check"]["rows"]
    names: list[str] = data["outputs"]
    return names


@pytest.mark.parametrize("target", ["onnx", "pt2", "executorch"])
def test_a_file_has_an_output_for_each_item_unless_lists_are_joined(
    target: str, checkpoint: Path, tmp_path: Path, capsys: Any
) -> None:
    if target == "executorch":
        pytest.importorskip("executorch")
    assert exported(target, checkpoint, tmp_path / "each", capsys) == ["sums.0", "sums.1"]
    assert exported(target, checkpoint, tmp_path / "joined", capsys, "--join-lists") == ["sums"]


def test_a_file_with_joined_lists_takes_any_number_of_items(checkpoint: Path, tmp_path: Path, capsys: Any) -> None:
    exported("onnx", checkpoint, tmp_path / "joined", capsys, "--join-lists")
    loaded = modelport.load(tmp_path / "joined")
    for items in (1, 2, 5):
        assert loaded(input_ids=torch.arange(items * 3).reshape(items, 3))["sums"].shape == (items, 3, 16)
