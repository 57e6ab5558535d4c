#!/usr/bin/env python3
"""What a step of two language models for onnxruntime spends its time on: kinds of nodes, ours next to the peer's.

    bench/bench_llm_nodes.py build/llm/ours-fp32 build/llm/theirs-fp32 --past 4096

runs one token after a cache of 4,096, `--new 512` a prompt of 512. The cache is made up, since time does not depend on
its numbers, and lies in one buffer that is read and written, as onnxruntime-genai has it: a step late in a text costs a
second instead of the text. Each node counts with its quickest of `--runs` runs, and the two files run in turns, so that
other work on the machine adds little. A sum of quickest nodes is less than a step takes; it is for comparing.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

THREADS = 2


class File:
    """A session that is profiled, its inputs bound for one kind of step."""

    def __init__(self, folder: Path, new: int, past: int, threads: int, profiles: str) -> None:
        config = json.loads((folder / "genai_config.json").read_text())["model"]["decoder"]
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.enable_profiling = threads, True
        options.profile_file_prefix = str(Path(profiles) / folder.name)
        model = str(folder / config["filename"])
        self.session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self.binding = self.session.io_binding()
        shape = (1, config["num_key_value_heads"], past + new, config["head_size"])
        whole = {"input_ids": np.arange(new)[None] % 900, "attention_mask": np.ones((1, past + new))}
        whole["position_ids"] = past + np.arange(new)[None]
        random = np.random.default_rng(0)
        for name, kind in [(item.name, item.type) for item in self.session.get_inputs()]:
            if name in whole:
                self.binding.bind_cpu_input(name, whole[name].astype(np.int64))
                continue
            numbers = random.standard_normal(shape, dtype=np.float32)
            numbers = numbers.astype(np.float16 if kind == "tensor(float16)" else np.float32)
            cache = onnxruntime.OrtValue.ortvalue_from_numpy(numbers)
            self.binding.bind_ortvalue_input(name, cache)
            self.binding.bind_ortvalue_output(name.replace("past_key_values", "present"), cache)
        self.binding.bind_output("logits")

    def run(self) -> None:
        self.session.run_with_iobinding(self.binding)

    def nodes(self) -> list[tuple[str, float]]:
        """Kind and quickest seconds of each node; of one with branches without what is in them."""
        events: list[dict[str, Any]] = json.loads(Path(self.session.end_profiling()).read_text())
        events = [one for one in events if one.get("cat") == "Node" and one["name"].endswith("_kernel_time")]
        best: dict[str, tuple[str, float]] = {}
        ended: list[dict[str, Any]] = []  # nodes of a branch end before the one that has it, and begin after it
        for event in sorted(events, key=lambda one: one["ts"] + one["dur"]):
            inside_us = 0
            while ended and ended[-1]["ts"] >= event["ts"]:
                inside_us += ended.pop()["dur"]
            found = (event["args"]["op_name"], (event["dur"] - inside_us) / 1e6)
            best[event["name"]] = min(best.get(event["name"], found), found)
            ended.append(event)
        return list(best.values())


def table(files: dict[str, list[tuple[str, float]]]) -> None:
    kinds = {who: collections.Counter[str]() for who in files}
    counts = {who: collections.Counter(kind for kind, _ in nodes) for who, nodes in files.items()}
    for who, nodes in files.items():
        for kind, time_s in nodes:
            kinds[who][kind] += time_s
    ours, theirs = kinds
    print(f"{'':34} {'ours':>18} {'theirs':>18}")
    for kind in sorted(kinds[ours] | kinds[theirs], key=lambda kind: -max(row[kind] for row in kinds.values())):
        cells = [f"{counts[who][kind]:5} {1000 * kinds[who][kind]:9.3f} ms" for who in files]
        print(f"{kind:34} {cells[0]:>18} {cells[1]:>18}")
    sums = [kinds[who].total() for who in files]
    cells = [f"{counts[who].total():5} {1000 * total:9.3f} ms" for who, total in zip(files, sums, strict=True)]
    print(f"{'all':34} {cells[0]:>18} {cells[1]:>18}   ours at {sums[1] / sums[0]:.2f} of the peer's speed")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ours", type=Path)
    parser.add_argument("theirs", type=Path)
    parser.add_argument("--new", type=int, default=1, help="tokens that the step reads (default: 1)")
    parser.add_argument("--past", type=int, default=0, help="tokens in the cache before it (default: 0)")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--threads", type=int, default=THREADS)
    parser.add_argument("--cores", help="processors to run on, such as 0,1")
    options = parser.parse_args()
    if options.cores:
        os.sched_setaffinity(0, {int(core) for core in options.cores.split(",")})
    with tempfile.TemporaryDirectory() as profiles:
        folders = {"ours": options.ours, "theirs": options.theirs}
        files = {
            who: File(folder.resolve(), options.new, options.past, options.threads, profiles)
            for who, folder in folders.items()
        }
        for _ in range(options.runs):
            for file in files.values():
                file.run()
        print(f"{options.new} tokens after {options.past}, {options.threads} threads, {options.runs} runs")
        table({who: file.nodes() for who, file in files.items()})
    return 0


if __name__ == "__main__":
    sys.exit(main())
