#!/usr/bin/env python3
"""Qwen3 with the sizes of 0.6B as an ExecuTorch program with XNNPACK, 8da4w products and an 8w embedding, next to the
one that optimum-executorch makes of the same folder: time, memory, delegates, and tokens per second in the runtime.

Exits with 1 and a list when a requirement is missed. `--quick` leaves the peer out, `--layers` makes the model smaller:
the peer takes more than a quarter of an hour of one processor for all 28. It is installed into a folder of its own,
because it wants another transformers.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path
from typing import Any

from requirements import Requirements, peak_mib, shown

LEAST_RATIO = 20.0
MOST_GIB = 3.0
LAYERS = 28
CACHE, PROMPT, STEPS = 1024, 128, 24
PEER = ("optimum-executorch==1.1.0", "transformers==5.0.0rc1", "torchao==0.18.0", "executorch==1.5.1")
HOME = Path(__file__).resolve().parent.parent / "build" / "optimum-executorch"
KERNELS = ("extension/llm/custom_ops/libcustom_ops_aot_lib.so", "kernels/quantized/libquantized_ops_aot_lib.so")
SETTINGS: dict[str, Any] = {
    "qlinear": "8da4w",
    "qembedding": "8w",
    "use_custom_sdpa": True,
    "use_custom_kv_cache": True,
    "max_seq_len": CACHE,
}


# --- what runs in processes of its own --------------------------------------------------------------------------------


def step_checkpoint(folder: str, layers: str) -> dict[str, float]:
    """Random weights in bf16, as the real ones are."""
    import torch
    from models import qwen3_06b_config
    from transformers import Qwen3ForCausalLM

    torch.manual_seed(0)
    config = qwen3_06b_config(num_hidden_layers=int(layers), dtype=torch.bfloat16)
    Qwen3ForCausalLM(config).to(torch.bfloat16).save_pretrained(folder)
    return {}


def step_ours(folder: str, out: str) -> dict[str, float]:
    from modelport.cli import main

    flags = [f"--{name}" if value is True else f"--{name}={value}" for name, value in SETTINGS.items()]
    if main(["export", "executorch", folder, out, "--recipe", "xnnpack", "--no-check", *flags]):
        raise SystemExit("the export failed")
    return {"peak_mib": peak_mib()}


def step_theirs(folder: str, out: str) -> dict[str, float]:
    """Run by the interpreter of the peer."""
    import importlib

    from optimum.exporters.executorch import convert, main_export

    # All recipes are imported to find one, and Core ML's tools are not there for every machine.
    convert.discover_recipes = lambda: importlib.import_module("optimum.exporters.executorch.recipes.xnnpack")
    place = Path(out)
    main_export(folder, task="text-generation", recipe="xnnpack", output_dir=str(place.parent), **SETTINGS)
    (place.parent / "model.pte").rename(place)
    return {"peak_mib": peak_mib()}


def step_run(*files: str) -> dict[str, Any]:
    """Seconds of a token behind a prompt, and of the prompt, of each file: the runtime's best of some, in turns, for
    whatever else the machine does then happens to all."""
    import executorch
    import torch
    from executorch.runtime import Runtime

    for library in KERNELS:
        torch.ops.load_library(str(Path(executorch.__path__[0]) / library))
    methods = {file: Runtime.get().load_program(file).load_method("forward") for file in files}
    taken: dict[str, dict[str, list[float]]] = {file: {"prompt": [], "token": []} for file in files}

    def called(file: str, kind: str, tokens: int, start: int) -> None:
        given = [torch.arange(start, start + tokens)[None], torch.arange(start, start + tokens)]
        begin = time.perf_counter()
        methods[file].execute(given)
        taken[file][kind].append(time.perf_counter() - begin)

    for i in range(STEPS + 1):
        for file in files:
            if i % 6 == 0:
                called(file, "prompt", PROMPT, 0)
            called(file, "token", 1, PROMPT + i)
    return {
        file: {kind: statistics.quantiles(times[1:], n=4)[0] for kind, times in kinds.items()}
        for file, kinds in taken.items()
    }


RUNS = {"checkpoint": step_checkpoint, "ours": step_ours, "theirs": step_theirs, "run": step_run}


def step(name: str, *arguments: object, python: Path | str = sys.executable) -> dict[str, Any]:
    """With the seconds of the whole process, imports and all: what people wait for."""
    begin = time.perf_counter()
    command = [str(python), __file__, "--step", name, *map(str, arguments)]
    offline = os.environ | {"HF_HUB_OFFLINE": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=offline, check=False)
    if done.returncode:
        raise SystemExit(f"{name} failed:\n{done.stderr[-3000:]}")
    return json.loads(done.stdout.splitlines()[-1]) | {"time": time.perf_counter() - begin}


def peer() -> Path:
    """Its interpreter, in an environment that finds torch and the runtime in ours."""
    python = HOME / "bin" / "python"
    if not (HOME / ".installed").exists():
        venv.create(HOME, with_pip=True, clear=True)
        own = next((HOME / "lib").glob("python3*")) / "site-packages"
        shared = [path for path in sys.path if path.endswith("site-packages")]
        (own / "shared.pth").write_text("\n".join(shared))
        install = [str(python), "-m", "pip", "install", "-q", *PEER]
        subprocess.run(install, check=True, stdout=subprocess.DEVNULL)
        (HOME / ".installed").touch()
    return python


# --- the table --------------------------------------------------------------------------------------------------------


def show(who: str, file: Path, made: dict[str, Any], ran: dict[str, float]) -> dict[str, Any]:
    from modelport.artifacts.pte import read_program

    method = read_program(file)["methods"]["forward"]
    row = {"delegates": len(method["delegates"]), "arena": sum(method["arenas"]), **made, **ran}
    print(
        f"  {who:<20}{shown(row['time']):>12}{row['peak_mib']:>8.0f} MiB{file.stat().st_size / 1e6:>8.0f} MB file"
        f"{row['delegates']:>6} delegates{row['arena'] / 1e6:>8.1f} MB arena"
        f"{PROMPT / row['prompt']:>9.1f} tokens/s of a prompt{1 / row['token']:>8.1f} tokens/s after it",
        flush=True,
    )
    return row


def compare(requirements: Requirements, ours: dict[str, Any], theirs: dict[str, Any], layers: int) -> None:
    ratio = theirs["time"] / ours["time"]
    if layers == LAYERS:
        requirements.check(f"export at least {LEAST_RATIO:.0f} times faster", ratio >= LEAST_RATIO, f"{ratio:.1f}")
    else:  # of a smaller model most is imports and the vocabulary
        print(
            f"          export {ratio:.1f} times faster, of which at least {LEAST_RATIO:.0f} are asked with all layers"
        )
    for what in ("delegates", "arena"):
        requirements.check(f"no more {what}", ours[what] <= theirs[what], f"{ours[what]}, {theirs[what]}")
    for kind, words in (("prompt", "reads a prompt"), ("token", "makes tokens")):
        ratio = theirs[kind] / ours[kind]
        requirements.check(f"{words} as fast", round(ratio, 2) >= 1.0, f"{ratio:.2f}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="without the peer")
    parser.add_argument("--layers", type=int, default=LAYERS)
    parser.add_argument("--step", nargs="+", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.step:
        name, *given = arguments.step
        print("\n" + json.dumps(RUNS[name](*given)))
        return 0
    requirements = Requirements()
    with tempfile.TemporaryDirectory() as folder:
        checkpoint, ours_file, theirs_file = (Path(folder) / name for name in ("model", "ours.pte", "theirs.pte"))
        print(f"Qwen3-0.6B, {arguments.layers} layers, 8da4w and 8w ({time.strftime('%Y-%m-%d')})", flush=True)
        step("checkpoint", checkpoint, arguments.layers)
        ours = step("ours", checkpoint, ours_file)
        files = [ours_file]
        if not arguments.quick:
            theirs = step("theirs", checkpoint, theirs_file, python=peer())
            files.append(theirs_file)
        ran = step("run", *files)
        ours = show("modelport", ours_file, ours, ran[str(ours_file)])
        gib = ours["peak_mib"] / 1024
        requirements.check(f"memory below {MOST_GIB:.0f} GiB", gib < MOST_GIB, f"{gib:.2f} GiB")
        if not arguments.quick:
            compare(
                requirements,
                ours,
                show("optimum-executorch", theirs_file, theirs, ran[str(theirs_file)]),
                arguments.layers,
            )
    return requirements.verdict()


if __name__ == "__main__":
    sys.exit(main())
