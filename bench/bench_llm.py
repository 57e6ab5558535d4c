#!/usr/bin/env python3
"""Language models for onnxruntime next to onnxruntime-genai's own builder: export, memory, prefill and decoding.

Qwen3 with the sizes of 0.6B and random weights, 2 threads. Exits with 1 and a list when a requirement is missed. Every
export and every run is a process of its own. mobius-onnx is a peer of exports where it can be installed, into a folder
of its own. `--long` adds a prompt and a text of 4,096 tokens, which take hours; `--tokens` is a shorter text, `--only`
one part.

`--files OURS THEIRS` exports nothing and measures two folders that are there, with `--prompts`, `--tokens`, `--rounds`
and `--cores`, so that one row can be measured again while nothing else runs:

    bench/bench_llm.py --files build/llm/ours-int4 build/llm/theirs-int4 --prompts 16 4096 --cores 0,1

What a step spends its time on, at any length of text and without generating it, is shown by bench_llm_nodes.py.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
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
PROMPTS, TEXT, LONG, ROUNDS = (16, 512), 256, 4096, 3
LATE = 256  # last steps of a text, where the cache is longest
DTYPES = ("int4", "fp32")
MOBIUS = Path(__file__).resolve().parent.parent / "build" / "mobius-onnx"
# What of its needs the environment has not, or has in a version that other peers want.
MOBIUS_PACKAGES = ("mobius-onnx", "onnxscript>=0.7.1", "onnx-ir", "onnx-shape-inference")


# --- what runs in processes of its own --------------------------------------------------------------------------------


def step_genai(folder: Path, length: int, tokens: int) -> dict[str, float]:
    """Seconds that it reads the prompt, and tokens per second after it."""
    import numpy as np
    import onnxruntime_genai as genai

    config = genai.Config(str(folder))
    # The checkpoint names no token that ends a text, and genai wants one.
    config.overlay('{"model": {"eos_token_id": 1, "pad_token_id": 1}}')
    config.overlay(f'{{"model": {{"decoder": {{"session_options": {{"intra_op_num_threads": {THREADS}}}}}}}}}')
    params = genai.GeneratorParams(model := genai.Model(config))
    params.set_search_options(max_length=length + tokens, min_length=length + tokens, do_sample=False)
    generator = genai.Generator(model, params)
    times = [time.perf_counter()]
    generator.append_tokens((np.arange(length) % 900)[None].astype(np.int32))
    while not generator.is_done():
        generator.generate_next_token()
        times.append(time.perf_counter())
    return _rates(times, length)


def step_load(folder: Path, length: int, tokens: int) -> dict[str, float]:
    import torch
    from bench_generate import Clock

    import modelport

    model, clock = modelport.load(folder, threads=THREADS), Clock()
    ids = (torch.arange(length) % 900)[None]
    settings = {"max_new_tokens": tokens, "min_new_tokens": tokens, "do_sample": False}
    model.generate(ids, attention_mask=torch.ones_like(ids), **settings, streamer=clock)
    return _rates(clock.times[1:], length)


def _rates(times: list[float], length: int) -> dict[str, float]:
    steps = [after - before for before, after in itertools.pairwise(times[1:])]
    late = steps[-LATE:]
    rates = {"prefill": length / (times[1] - times[0]), "decode": 1 / statistics.median(steps)}
    return {**rates, "late": len(late) / sum(late)}


def step_bandwidth(_: Path, mib: int, runs: int) -> dict[str, float]:
    """Bytes per second of memory that is read once, in order, the quickest run; far more than caches hold."""
    import torch

    torch.set_num_threads(THREADS)
    numbers = torch.ones(mib << 18)
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        numbers.sum()
        times.append(time.perf_counter() - start)
    return {"bandwidth": numbers.nbytes / min(times)}


STEPS = {"genai": step_genai, "load": step_load, "bandwidth": step_bandwidth}


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
        # Twice each, in turns, and the quicker one counts: what else the machine does only adds to a time.
        runs = [(whole_command([*ours, "--no-check", *flags]), whole_command(builder)) for _ in range(2)]
        (mine, my_peak), (theirs, their_peak) = map(min, zip(*runs, strict=True))
        print(f"\n{dtype}{' (ours linked)' if dtype == 'fp32' else ''}: export", flush=True)
        print(f"  modelport        {shown(mine):>12}  {my_peak:8,.0f} MiB")
        print(f"  genai's builder  {shown(theirs):>12}  {their_peak:8,.0f} MiB")
        ratio, share = theirs / mine, my_peak / their_peak
        requirements.check(
            f"{dtype} export {LEAST_EXPORT_RATIO:.0f} times faster", ratio >= LEAST_EXPORT_RATIO, f"{ratio:.1f} times"
        )
        requirements.check(f"{dtype} export in a quarter of its memory", share <= MOST_MEMORY, f"{share:.2f} of it")
        if dtype == "fp32":  # it has no int4
            mobius(checkpoint, home / "mobius-fp32", mine, my_peak)


def mobius(checkpoint: Path, out: Path, mine: float, my_peak: float) -> None:
    """A further peer of exports. It wants another onnxscript than transformers' exporter, so it lies in a folder that
    only its own process sees."""
    if not (MOBIUS / "mobius").exists():
        install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(MOBIUS)]
        done = subprocess.run([*install, *MOBIUS_PACKAGES], check=False, capture_output=True, text=True)
        if done.returncode != 0:
            print(f"  mobius-onnx      left out, it cannot be installed: {done.stderr.strip().splitlines()[-1]}")
            return
    build = ["mobius", "build", "--config", str(checkpoint), str(out), "--ep", "cpu", "--runtime", "ort-genai"]
    try:
        theirs, peak = whole_command(build, {**os.environ, "PYTHONPATH": str(MOBIUS)})
    except RuntimeError as error:
        print(f"  mobius-onnx      left out, its export failed: {str(error).strip().splitlines()[-1]}")
        return
    print(f"  mobius-onnx      {shown(theirs):>12}  {peak:8,.0f} MiB", end="")
    print(f"  (we are {theirs / mine:.1f} times faster, in {my_peak / peak:.2f} of its memory)")


def weight_bytes(folder: Path) -> int:
    """What a step reads: all weights, for the embedding is the head as well."""
    return sum(path.stat().st_size for path in folder.iterdir() if ".onnx" in path.name)


def rates_in_turns(
    folders: dict[str, Path], length: int, tokens: int, rounds: int
) -> tuple[dict[str, dict[str, float]], float]:
    """The best of some runs of each, and of the memory's bandwidth."""
    rows: dict[str, list[dict[str, float]]] = {who: [] for who in folders}
    bandwidth = 0.0
    for turn in range(rounds):
        bandwidth = max(bandwidth, step("bandwidth", next(iter(folders.values())), 1024, 8)["bandwidth"])
        # In turns, so that noise of the machine meets all, and every other time backwards, so that nobody always
        # runs while the processor is still warm from the same neighbour.
        for who in list(folders)[:: -1 if turn % 2 else 1]:
            rows[who].append(step("load" if "load" in who else "genai", folders[who], length, tokens))
    best = {who: {key: max(run[key] for run in runs) for key in runs[0]} for who, runs in rows.items()}
    return best, bandwidth


def speeds(
    name: str, folders: dict[str, Path], length: int, tokens: int, rounds: int, requirements: Requirements
) -> None:
    best, bandwidth = rates_in_turns(folders, length, tokens, rounds)
    print(f"\n{name}, prompt of {length}, {tokens} tokens after it: tokens per second", end="")
    print(f"; memory is read at {bandwidth / 1e9:.1f} GB/s", flush=True)
    keys = ["prefill", "decode"] + ["late"] * (tokens > LATE)  # of a short text the last steps are all steps
    for who, rate in best.items():
        share = rate["decode"] * weight_bytes(folders[who]) / bandwidth
        print(f"  {who:22} prefill {rate['prefill']:8.1f}  decode {rate['decode']:6.2f}, ", end="")
        print(f"last {min(tokens, LATE)} {rate['late']:6.2f}, {share:.0%} of the bandwidth by weights alone")
    for who in [who for who in folders if who != "theirs"]:
        for key in keys:
            ratio = best[who][key] / best["theirs"][key]
            what = f"{name} {key}, {length} and {tokens} tokens, {who}: {LEAST_SPEED} of the builder's files"
            requirements.check(what, ratio >= LEAST_SPEED, f"{ratio:.2f}")


def compared(ours: Path, theirs: Path, only: str | None) -> dict[str, Path]:
    folders = {"theirs": theirs, "ours": ours}
    return folders if only == "genai" else {**folders, "ours, modelport.load": ours}


def every_speed(home: Path, options: argparse.Namespace, requirements: Requirements) -> None:
    sizes = [(length, options.tokens, options.rounds) for length in options.prompts]
    if options.long:
        sizes += [(LONG, options.tokens, options.rounds), (PROMPTS[0], LONG, 1)]
    for length, tokens, rounds in sizes:
        for dtype in DTYPES:
            folders = compared(home / f"ours-{dtype}", home / f"theirs-{dtype}", options.only)
            speeds(dtype, folders, length, tokens, rounds, requirements)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--long", action="store_true", help=f"a prompt and a text of {LONG:,} tokens as well")
    parser.add_argument("--prompts", type=int, nargs="+", default=PROMPTS, help="tokens of prompts (default: 16 512)")
    parser.add_argument("--tokens", type=int, default=TEXT, help=f"tokens after a prompt (default: {TEXT})")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"runs of each, in turns (default: {ROUNDS})")
    parser.add_argument("--only", choices=["exports", "genai"], help="exports alone, or no modelport.load")
    parser.add_argument("--home", type=Path, help="keep checkpoint and exports in this folder")
    parser.add_argument("--files", type=Path, nargs=2, metavar=("OURS", "THEIRS"), help="measure these, export nothing")
    parser.add_argument("--cores", help=f"processors to run on, such as 0,1 (there are {THREADS} threads)")
    parser.add_argument("--step", nargs=4, help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> int:
    options = parsed()
    if options.step is not None:
        name, folder, *sizes = options.step
        print(json.dumps(STEPS[name](Path(folder), *map(int, sizes))))
        return 0
    if options.cores:
        os.sched_setaffinity(0, {int(core) for core in options.cores.split(",")})  # what is started inherits it
    requirements = Requirements()
    if options.files:
        ours, theirs = (folder.resolve() for folder in options.files)
        for length in options.prompts:
            folders = compared(ours, theirs, options.only)
            speeds(ours.name, folders, length, options.tokens, options.rounds, requirements)
        return requirements.verdict()
    with tempfile.TemporaryDirectory(dir="build") as made:
        home = (options.home or Path(made)).resolve()
        if not (home / "checkpoint").exists():
            in_own_process("checkpoint", home / "checkpoint")
        exports(home, requirements)
        if options.only != "exports":
            every_speed(home, options, requirements)
    return requirements.verdict()


if __name__ == "__main__":
    sys.exit(main())
