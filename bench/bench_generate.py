#!/usr/bin/env python3
"""Export for generation next to transformers.exporters, and tokens per second next to onnxruntime-genai.

Exits with 1 and a list when a requirement is missed. `--quick` leaves the peers and the large model out.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from requirements import Requirements, median, seconds, shown

LEAST_EXPORT_RATIO = 100.0
# Of onnxruntime-genai's tokens per second on its own builder's files. Its operator writes new keys and values into a
# buffer that stays; ONNX's operators give the grown cache as a new tensor, which costs a copy of it for each token.
LEAST_SPEED = 0.9
PROMPT, TOKENS = 128, 48
THREADS = 2


def prompt(batch: int, length: int) -> dict[str, Any]:
    import torch

    ids = torch.arange(batch * length).view(batch, length) % 900
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


def export(quick: bool, requirements: Requirements) -> None:
    from models import tiny_qwen3

    import modelport

    print("Qwen3, 28 layers, hidden 64: export_for_generation; ours the median of 5, the peer once", flush=True)
    model = tiny_qwen3()
    config = modelport.OnnxConfig(dynamic=True)
    ours = median(lambda: modelport.OnnxExporter().export_for_generation(model, prompt(2, 7), config))
    print(f"  modelport      {shown(ours):>12}  one graph")
    if quick:
        return
    from transformers.exporters.exporter_onnx import OnnxConfig, OnnxExporter

    peer = OnnxConfig(dynamic=True)
    theirs = seconds(lambda: OnnxExporter().export_for_generation(model, prompt(2, 7), peer))
    print(f"  transformers   {shown(theirs):>12}  prefill and decode")
    ratio = theirs / ours
    requirements.check(f"{LEAST_EXPORT_RATIO:.0f} times faster", ratio >= LEAST_EXPORT_RATIO, f"{ratio:.0f} times")


def decode_rate(steps: list[float]) -> float:
    """Tokens per second of the steps after the prompt."""
    return 1 / statistics.median(steps[1:])


class Clock:
    """A streamer that only looks at the clock."""

    def __init__(self) -> None:
        self.times = [time.perf_counter()]

    def put(self, _tokens: Any) -> None:
        self.times.append(time.perf_counter())

    def end(self) -> None:
        pass

    def steps(self) -> list[float]:
        """The first call of `put` is the prompt itself."""
        return [after - before for before, after in itertools.pairwise(self.times[1:])]


def our_steps(folder: Path) -> list[float]:
    import modelport

    clock = Clock()
    model = modelport.load(folder, threads=THREADS)
    settings = {"max_new_tokens": TOKENS, "min_new_tokens": TOKENS, "do_sample": False}
    model.generate(**prompt(1, PROMPT), **settings, streamer=clock)
    return clock.steps()


def their_steps(folder: Path) -> list[float]:
    import onnxruntime_genai as genai

    config = genai.Config(str(folder))
    config.overlay(f'{{"model": {{"decoder": {{"session_options": {{"intra_op_num_threads": {THREADS}}}}}}}}}')
    model = genai.Model(config)
    params = genai.GeneratorParams(model)
    length = PROMPT + TOKENS
    params.set_search_options(max_length=length, min_length=length, do_sample=False)
    generator = genai.Generator(model, params)
    times = [time.perf_counter()]
    generator.append_tokens(prompt(1, PROMPT)["input_ids"].numpy().astype("int32"))
    while not generator.is_done():
        generator.generate_next_token()
        times.append(time.perf_counter())
    return [after - before for before, after in itertools.pairwise(times)]


def decoding(folder: Path, requirements: Requirements) -> None:
    from bench_onnx import in_own_process
    from bench_onnx import large_model as checkpoint_model

    import modelport

    print(
        f"\nQwen3 with the sizes of 0.6B, fp32, {THREADS} threads, {PROMPT} tokens read, {TOKENS} generated", flush=True
    )
    checkpoint, ours, theirs = folder / "checkpoint", folder / "ours", folder / "genai"
    in_own_process("checkpoint", checkpoint)
    model = checkpoint_model(checkpoint)
    parts = modelport.OnnxExporter().export_for_generation(model, prompt(2, 7), modelport.OnnxConfig())
    parts.save(ours)
    del model, parts
    command = [sys.executable, "-m", "onnxruntime_genai.models.builder", "-i", str(checkpoint), "-o", str(theirs)]
    subprocess.run([*command, "-p", "fp32", "-e", "cpu", "-c", str(folder / "cache")], check=True, capture_output=True)
    rates: dict[str, list[float]] = {"ours": [], "theirs": []}
    for _ in range(3):  # in turn, so that noise of the machine meets both
        rates["ours"].append(decode_rate(our_steps(ours)))
        rates["theirs"].append(decode_rate(their_steps(theirs)))
    mine, peer = (statistics.median(row) for row in rates.values())
    print(f"  modelport.load        {mine:6.2f} tokens/s\n  onnxruntime-genai     {peer:6.2f} tokens/s")
    ratio = mine / peer
    requirements.check(f"at least {LEAST_SPEED} of genai's tokens per second", ratio >= LEAST_SPEED, f"{ratio:.2f}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="leave out the peers and the large model")
    parser.add_argument("--only", choices=["export", "decoding"], help="one part")
    options = parser.parse_args()
    requirements = Requirements()
    if options.only != "decoding":
        export(options.quick, requirements)
    if options.only != "export" and not options.quick:
        with tempfile.TemporaryDirectory(dir="build") as name:
            decoding(Path(name).resolve(), requirements)
    return requirements.verdict()


if __name__ == "__main__":
    sys.exit(main())
