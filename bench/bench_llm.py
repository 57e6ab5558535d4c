#!/usr/bin/env python3
"""Language models for onnxruntime next to onnxruntime-genai's own builder: export, memory, prefill and decoding.

Qwen3 with the sizes of 0.6B and random weights, 2 threads. Exits with 1 and a list when a requirement is missed. Every
export and every run is a process of its own. `--long` adds a prompt of 4,096 tokens, `--only` is one part.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench_onnx import in_own_process, whole_command
from requirements import Requirements, shown

LEAST_EXPORT_RATIO = 4.0  # of the builder's time, int4 and linked fp32
MOST_MEMORY = 0.25  # of the builder's peak
LEAST_SPEED = 1.0  # of the builder's tokens per second, in all
THREADS = 2
PROMPTS, LONG_PROMPT, TOKENS, ROUNDS = (16, 512), 4096, 24, 3
DTYPES = ("int4", "fp32")


# --- what runs in processes of its own --------------------------------------------------------------------------------


def step_genai(folder: Path, length: int) -> dict[str, float]:
    """Seconds that it reads the prompt, and tokens per second after it."""
    import numpy as np
    import onnxruntime_genai as genai

    config = genai.Config(str(folder))
    # The checkpoint names no token that ends a text, and genai wants one.
    config.overlay('{"model": {"eos_token_id": 1, "pad_token_id": 1}}')
    config.overlay(f'{{"model": {{"decoder": {{"session_options": {{"intra_op_num_threads": {THREADS}}}}}}}}}')
    params = genai.GeneratorParams(model := genai.Model(config))
    params.set_search_options(max_length=length + TOKENS, min_length=length + TOKENS, do_sample=False)
    generator = genai.Generator(model, params)
    times = [time.perf_counter()]
    generator.append_tokens((np.arange(length) % 900)[None].astype(np.int32))
    while not generator.is_done():
        generator.generate_next_token()
        times.append(time.perf_counter())
    return _rates(times, length)


def step_load(folder: Path, length: int) -> dict[str, float]:
    import torch
    from bench_generate import Clock

    import modelport

    model, clock = modelport.load(folder, threads=THREADS), Clock()
    ids = (torch.arange(length) % 900)[None]
    settings = {"max_new_tokens": TOKENS, "min_new_tokens": TOKENS, "do_sample": False}
    model.generate(ids, attention_mask=torch.ones_like(ids), **settings, streamer=clock)
    return _rates(clock.times[1:], length)


def _rates(times: list[float], length: int) -> dict[str, float]:
    steps = [after - before for before, after in itertools.pairwise(times[1:])]
    return {"prefill": length / (times[1] - times[0]), "decode": 1 / statistics.median(steps)}


STEPS = {"genai": step_genai, "load": step_load}


def step(name: str, *args: Any) -> dict[str, float]:
    command = [sys.executable, __file__, "--step", name, *map(str, args)]
    found = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(found.stdout.splitlines()[-1])


# --- the parts --------------------------------------------------------------------------------------------------------


def exports(home: Path, requirements: Requirements) -> None:
    checkpoint = home / "checkpoint"
    for dtype in DTYPES:
        flags = ["--dtype", dtype] if dtype == "int4" else ["--weights", "link"]
        ours = ["modelport", "export", "onnx", str(checkpoint), str(home / f"ours-{dtype}"), "--for", "genai"]
        builder = ["onnxruntime_genai.models.builder", "-i", str(checkpoint), "-e", "cpu"]
        builder += ["-o", str(home / f"theirs-{dtype}"), "-p", dtype, "-c", str(home / "cache")]
        mine, my_peak = whole_command([*ours, "--no-check", *flags])
        theirs, their_peak = whole_command(builder)
        print(f"\n{dtype}{' (ours linked)' if dtype == 'fp32' else ''}: export", flush=True)
        print(f"  modelport        {shown(mine):>12}  {my_peak:8,.0f} MiB")
        print(f"  genai's builder  {shown(theirs):>12}  {their_peak:8,.0f} MiB")
        ratio, share = theirs / mine, my_peak / their_peak
        requirements.check(
            f"{dtype} export {LEAST_EXPORT_RATIO:.0f} times faster", ratio >= LEAST_EXPORT_RATIO, f"{ratio:.1f} times"
        )
        requirements.check(f"{dtype} export in a quarter of its memory", share <= MOST_MEMORY, f"{share:.2f} of it")


def speeds(home: Path, lengths: tuple[int, ...], requirements: Requirements) -> None:
    for dtype in DTYPES:
        for length in lengths:
            rows: dict[str, list[dict[str, float]]] = {"theirs": [], "ours": [], "ours, modelport.load": []}
            for _ in range(ROUNDS):  # in turn, so that noise of the machine meets all
                rows["theirs"].append(step("genai", home / f"theirs-{dtype}", length))
                rows["ours"].append(step("genai", home / f"ours-{dtype}", length))
                rows["ours, modelport.load"].append(step("load", home / f"ours-{dtype}", length))
            best = {who: {key: max(run[key] for run in runs) for key in runs[0]} for who, runs in rows.items()}
            print(f"\n{dtype}, prompt of {length}, {TOKENS} tokens after it: tokens per second", flush=True)
            for who, rate in best.items():
                print(f"  {who:22} prefill {rate['prefill']:8.1f}  decode {rate['decode']:6.2f}")
            for who in ("ours", "ours, modelport.load"):
                for key in ("prefill", "decode"):
                    ratio = best[who][key] / best["theirs"][key]
                    name = f"{dtype} {key} after {length}, {who}: {LEAST_SPEED} of the builder's files"
                    requirements.check(name, ratio >= LEAST_SPEED, f"{ratio:.2f}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--long", action="store_true", help=f"a prompt of {LONG_PROMPT:,} tokens as well")
    parser.add_argument("--only", choices=["exports"], help="one part")
    parser.add_argument("--home", type=Path, help="keep checkpoint and exports in this folder")
    parser.add_argument("--step", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step is not None:
        name, folder, length = options.step
        print(json.dumps(STEPS[name](Path(folder), int(length))))
        return 0
    requirements = Requirements()
    with tempfile.TemporaryDirectory(dir="build") as made:
        home = (options.home or Path(made)).resolve()
        if not (home / "checkpoint").exists():
            in_own_process("checkpoint", home / "checkpoint")
        exports(home, requirements)
        if options.only is None:
            speeds(home, PROMPTS + ((LONG_PROMPT,) if options.long else ()), requirements)
    return requirements.verdict()


if __name__ == "__main__":
    sys.exit(main())
