#!/usr/bin/env python3
"""ExecuTorch programs next to those of transformers.exporters: time, partitions of XNNPACK, memory and speed.

Exits with 1 and a list when a requirement is missed. `--quick` leaves the peer out.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from requirements import Requirements, median, peak_mib, seconds, shown

LEAST_TINY_RATIO = 200.0
TOKENS = (1, 16)


def text() -> dict[str, Any]:
    import torch

    ids = torch.arange(TOKENS[0] * TOKENS[1]).view(TOKENS) % 900
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


# --- what runs in processes of its own --------------------------------------------------------------------------------


def step_ours(out: Path) -> dict[str, float]:
    from models import tiny_qwen3

    import modelport

    model, config = tiny_qwen3(), modelport.ExecutorchConfig(recipe="xnnpack")
    taken = median(lambda: modelport.ExecutorchExporter().export(model, text(), config).save(out))
    return {"time": taken, "peak_mib": peak_mib()}


def step_theirs(out: Path) -> dict[str, float]:
    from models import tiny_qwen3
    from transformers.exporters.exporter_executorch import ExecutorchConfig, ExecutorchExporter

    model = tiny_qwen3()

    def export() -> None:
        program = ExecutorchExporter().export(model, text(), config=ExecutorchConfig(backend="xnnpack"))
        out.write_bytes(program.buffer)

    return {"time": seconds(export), "peak_mib": peak_mib()}


def step_run(out: Path) -> dict[str, float]:
    """Once to warm up, then the median, in the runtime as its users call it."""
    from executorch.runtime import Runtime

    program = Runtime.get().load_program(str(out))
    method = program.load_method("forward")
    tokens = list(text().values())[: method.metadata.num_inputs()]
    return {"time": median(lambda: method.execute(tokens), runs=15)}


STEPS = {"ours": step_ours, "theirs": step_theirs, "run": step_run}


def step(name: str, out: Path) -> dict[str, float]:
    done = subprocess.run([sys.executable, __file__, "--step", name, str(out)], stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout.splitlines()[-1])


# --- the table --------------------------------------------------------------------------------------------------------


def forward_of(path: Path) -> dict[str, Any]:
    from modelport.artifacts.pte import read_program

    return read_program(path)["methods"]["forward"]


def show(who: str, path: Path, taken: dict[str, float]) -> dict[str, Any]:
    method = forward_of(path)
    row = {
        "delegates": len(method["delegates"]),
        "arena": sum(method["arenas"]),
        "run": step("run", path)["time"],
    }
    print(
        f"  {who:<26}{shown(taken['time']):>12}{taken['peak_mib']:>9.0f} MiB{row['delegates']:>8} delegates"
        f"{row['arena'] / 1024:>10.0f} KiB arena{shown(row['run']):>12} a run",
        flush=True,
    )
    return row


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="without the peer")
    parser.add_argument("--step", nargs=2, metavar=("NAME", "OUT"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.step:
        name, out = arguments.step
        print(json.dumps(STEPS[name](Path(out))))
        return 0
    requirements = Requirements()
    with tempfile.TemporaryDirectory() as folder:
        print(f"Qwen3 with 28 narrow layers, XNNPACK, {TOKENS[1]} tokens ({time.strftime('%Y-%m-%d')})", flush=True)
        ours_file, theirs_file = Path(folder) / "ours.pte", Path(folder) / "theirs.pte"
        ours = step("ours", ours_file)
        own = show("modelport", ours_file, ours)
        if arguments.quick:
            return requirements.verdict()
        theirs = step("theirs", theirs_file)
        other = show("transformers.exporters", theirs_file, theirs)
        ratio = theirs["time"] / ours["time"]
        requirements.check(
            f"export at least {LEAST_TINY_RATIO:.0f} times faster", ratio >= LEAST_TINY_RATIO, f"{ratio:.0f}"
        )
        requirements.check(
            "no more delegates", own["delegates"] <= other["delegates"], f"{own['delegates']}, {other['delegates']}"
        )
        requirements.check("no larger arena", own["arena"] <= other["arena"], f"{own['arena']}, {other['arena']} bytes")
        requirements.check(
            "runs as fast (within 5 %)", own["run"] <= 1.05 * other["run"], f"{own['run'] / other['run']:.2f}"
        )
    return requirements.verdict()


if __name__ == "__main__":
    sys.exit(main())
