"""Memory that an export of weights in 4 bits takes: that of its largest tensors, not of the model."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch
from transformers import LlamaConfig, LlamaForCausalLM

_WIDTH, _INSIDE = 768, 2048
_LAYER = 4 * (4 * _WIDTH**2 + 3 * _WIDTH * _INSIDE)  # bytes
# The command in a process of its own, and the most memory that it had.
_MEASURED = """
import resource, subprocess, sys
subprocess.run([sys.executable, "-m", "modelport", *sys.argv[1:]], check=True, stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)
"""


def _checkpoint(folder: Path, **sizes: Any) -> Path:
    config = {"hidden_size": _WIDTH, "intermediate_size": _INSIDE, "num_attention_heads": 12, "vocab_size": 512}
    torch.manual_seed(0)
    config = LlamaConfig(**config | sizes, tie_word_embeddings=True)
    LlamaForCausalLM(config).save_pretrained(folder, max_shard_size="64MB")
    return folder


def _peak(checkpoint: Path) -> int:
    flags = ["--dtype", "int4", "--for", "genai", "--no-check", "--quiet"]
    command = ["export", "onnx", str(checkpoint), f"{checkpoint}-int4", *flags]
    done = subprocess.run([sys.executable, "-c", _MEASURED, *command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def test_the_peak_follows_the_largest_tensor_and_not_the_model(tmp_path: Path) -> None:
    few = _peak(_checkpoint(tmp_path / "few", num_hidden_layers=2))
    many = _peak(_checkpoint(tmp_path / "many", num_hidden_layers=10))
    assert len(json.loads((tmp_path / "many/model.safetensors.index.json").read_text())["weight_map"]) > 80
    assert many - few < 0.15 * 8 * _LAYER
    vocabulary = 65536
    wide = _peak(_checkpoint(tmp_path / "wide", num_hidden_layers=2, vocab_size=vocabulary))
    assert wide - few < 4 * vocabulary * _WIDTH
