#!/usr/bin/env python3
"""Weightless capture of a Llama with the shape of an 8B model: peak memory, and time next to an eager forward on meta.

The checkpoint is a header and a hole: a sparse file of 16 GB that takes no disk."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from requirements import peak_mib, seconds

MOST_MIB = 1536
MOST_FORWARDS = 5.0
BATCH, SEQ = 2, 16
RUNS = 3


@dataclass
class Result:
    peak_mib: float  # of a fresh process, when its first capture is done
    first_s: float  # that capture, with what torch and transformers import on the way
    capture_s: float  # the best of some
    forward_s: float  # one eager forward on the meta device, the best of some
    nodes: int

    @property
    def ratio(self) -> float:
        return self.capture_s / self.forward_s

    @property
    def good(self) -> bool:
        return self.peak_mib < MOST_MIB and self.ratio <= MOST_FORWARDS


def measure() -> Result:
    """The numbers, taken in a process of their own."""
    with tempfile.TemporaryDirectory() as folder:
        write_checkpoint(Path(folder))
        child = [sys.executable, __file__, "--in", folder]
        done = subprocess.run(child, check=True, stdout=subprocess.PIPE, text=True)
    return Result(**json.loads(done.stdout.splitlines()[-1]))


def write_checkpoint(folder: Path) -> None:
    """config.json and a sparse model.safetensors."""
    import torch
    from transformers import LlamaConfig

    config = LlamaConfig(
        num_hidden_layers=32,
        hidden_size=4096,
        intermediate_size=14336,
        vocab_size=128256,
        num_attention_heads=32,
        num_key_value_heads=8,
        tie_word_embeddings=False,
        dtype=torch.bfloat16,
        architectures=["LlamaForCausalLM"],
    )
    config.save_pretrained(folder)
    header: dict[str, Any] = {}
    end = 0
    for name, tensor in _on_meta(config).state_dict().items():
        begin, end = end, end + tensor.numel() * tensor.itemsize
        header[name] = {"dtype": "BF16", "shape": list(tensor.shape), "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(folder / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(file.tell() + end)


def _on_meta(config: Any) -> Any:
    import torch
    from transformers import LlamaForCausalLM

    with torch.device("meta"):
        return LlamaForCausalLM._from_config(config, dtype=torch.bfloat16).eval()


def _measure_in(folder: Path) -> Result:
    import torch

    import modelport

    ids = torch.arange(BATCH * SEQ).view(BATCH, SEQ)
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    captures: list[Any] = []
    first = seconds(lambda: captures.append(modelport.capture(folder, inputs, dynamic=True)))
    peak = peak_mib()
    nodes = captures.pop().program.node_count()
    capture = min(seconds(lambda: modelport.capture(folder, inputs, dynamic=True)) for _ in range(RUNS))

    from transformers import LlamaConfig

    model = _on_meta(LlamaConfig.from_pretrained(folder))
    # A mask of four axes and given positions: the model would ask others for their values, and meta has none.
    mask = torch.zeros(BATCH, 1, SEQ, SEQ, dtype=torch.bfloat16, device="meta")
    on_meta = {"input_ids": ids.to("meta"), "attention_mask": mask, "position_ids": ids.to("meta")}
    with torch.no_grad():
        model(**on_meta)
        forward = min(seconds(lambda: model(**on_meta)) for _ in range(RUNS))
    return Result(peak, first, capture, forward, nodes)


def main() -> int:
    if sys.argv[1:2] == ["--in"]:
        print(json.dumps(vars(_measure_in(Path(sys.argv[2])))))
        return 0
    result = measure()
    print(f"weightless capture of a Llama with the shape of 8B: {result.nodes} nodes")
    print(f"  peak memory           {result.peak_mib:7.0f} MiB   (at most {MOST_MIB})")
    print(f"  first in the process  {result.first_s:7.2f} s")
    print(f"  capture               {result.capture_s:7.2f} s")
    print(f"  eager forward on meta {result.forward_s:7.2f} s")
    print(f"  ratio                 {result.ratio:7.2f}       (at most {MOST_FORWARDS})")
    return 0 if result.good else 1


if __name__ == "__main__":
    sys.exit(main())
