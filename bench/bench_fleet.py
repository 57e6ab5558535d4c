#!/usr/bin/env python3
"""A fleet of every model of the zoo in every format: exports a minute on two cores, next to transformers' exporter.

The peer exports a sample of the same models, one after the other in a process that has imported everything and has
built the model; what is counted is its export alone, and its rate is what two such processes would reach. Ours has
imports, loading and writing in it. Exits with 1 where a requirement is missed. `--quick` leaves out the peer, which
takes minutes."""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

from requirements import Requirements

ROOT = Path(__file__).resolve().parent.parent
FORMATS = ("onnx", "pt2", "executorch")
JOBS = 2
LEAST_RATIO = 100.0
LEAST_SHARE = 0.95  # of exports that are not refused
SAMPLE = 6
LONGEST = 300  # seconds of one export of the peer


def zoo() -> list[Any]:
    sys.path.insert(0, str(ROOT / "tests"))
    from zoo import ROWS

    return list(ROWS)


def save_zoo(folder: Path) -> Path:
    """A checkpoint for each row, and the list of them."""
    from transformers.utils import logging

    logging.disable_progress_bar()
    logging.set_verbosity_error()
    places = []
    for row in zoo():
        model, _ = row.build()
        places.append(folder / "models" / row.name.replace(" ", "_").replace("/", "_"))
        model.save_pretrained(places[-1])
    (folder / "models.txt").write_text("".join(f"'{place}'\n" for place in places))
    return folder / "models.txt"


def fleet(models: Path, out: Path) -> tuple[float, dict[str, Any], list[dict[str, Any]]]:
    formats = [word for form in FORMATS for word in ("--format", form)]
    command = [sys.executable, "-m", "modelport", "fleet", str(models), str(out), *formats]
    command += ["--no-check", "--jobs", str(JOBS), "--quiet", "--json"]
    start = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
    taken = time.perf_counter() - start
    rows = [json.loads(line) for line in (out / "fleet.jsonl").read_text().splitlines()]
    return taken, json.loads(done.stdout), rows


# --- the peer ---------------------------------------------------------------------------------------------------------


def export_theirs(form: str, model: Any, inputs: dict[str, Any], out: Path) -> None:
    if form == "onnx":
        from transformers.exporters.exporter_onnx import OnnxConfig, OnnxExporter

        OnnxExporter().export(model, inputs, OnnxConfig(dynamic=True, output_path=str(out / "theirs.onnx")))
    elif form == "pt2":
        import torch
        from transformers.exporters.exporter_dynamo import DynamoConfig, DynamoExporter

        torch.export.save(DynamoExporter().export(model, inputs, DynamoConfig(dynamic=True)), out / "theirs.pt2")
    else:
        from transformers.exporters.exporter_executorch import ExecutorchConfig, ExecutorchExporter

        program = ExecutorchExporter().export(model, inputs, ExecutorchConfig(dynamic=True))
        (out / "theirs.pte").write_bytes(program.buffer)


def measure_theirs(names: list[str], form: str) -> None:
    """In a process of its own: a line of JSON for each model."""
    warnings.simplefilter("ignore")
    rows = {row.name: row for row in zoo()}
    with tempfile.TemporaryDirectory() as folder:
        for name in ["bert", *names]:  # the first is not counted: it imports what is imported late
            model, inputs = rows[name].build()
            start = time.perf_counter()
            try:
                export_theirs(form, model, inputs, Path(folder))
                print(json.dumps({"name": name, "seconds": time.perf_counter() - start}), flush=True)
            except Exception as error:
                print(json.dumps({"name": name, "error": f"{type(error).__name__}: {error}"[:200]}), flush=True)


def theirs(names: list[str], form: str) -> list[dict[str, Any]]:
    command = [sys.executable, __file__, "--peer", form, *names]
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=LONGEST * len(names),
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        said = done.stdout
    except subprocess.TimeoutExpired as error:
        said = (error.stdout or b"").decode()
    return [json.loads(line) for line in said.splitlines() if line.startswith("{")][1:]


def compare(rows: list[dict[str, Any]], rate: float, requirements: Requirements) -> None:
    names = [row.name for row in zoo()]
    sample = random.Random(0).sample([name for name in names if name != "bert"], SAMPLE)
    known = Counter(row["format"] for row in rows if row["ok"])
    times: list[float] = []
    for form in FORMATS:
        found = theirs(sample, form)
        good = [row["seconds"] for row in found if "seconds" in row]
        print(f"  {form:11} ours {known[form]} of {len(names)}; theirs {len(good)} of {SAMPLE} of the sample", end="")
        print(f", {sum(good) / len(good):.1f} s each" if good else "")
        times += good
    if not times:
        requirements.check("the peer exports something", False, "nothing of the sample")
        return
    peer = JOBS * 60 * len(times) / sum(times)
    ratio = rate / peer
    found = f"{rate:.0f} a minute next to {peer:.1f}: {ratio:.0f} times"
    requirements.check(f"at least {LEAST_RATIO:.0f} times transformers' exporter", ratio >= LEAST_RATIO, found)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="leave out transformers' exporter")
    parser.add_argument("--peer", metavar="FORMAT", help=argparse.SUPPRESS)
    parser.add_argument("names", nargs="*", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.peer:
        measure_theirs(args.names, args.peer)
        return 0
    requirements = Requirements()
    with tempfile.TemporaryDirectory() as name:
        models = save_zoo(Path(name))
        taken, said, rows = fleet(models, Path(name) / "out")
        rate = 60 * said["made"] / taken
        print(f"\n{said['made']} of {said['total']} exports in {taken:.1f} s on {JOBS} processes: {rate:.0f} a minute")
        share = said["made"] / said["total"]
        requirements.check("exports that are not refused", share >= LEAST_SHARE, f"{100 * share:.1f} %")
        again, said, _ = fleet(models, Path(name) / "out")
        requirements.check("nothing is done again", said["made"] == 0, f"{said['kept']} kept, in {again:.1f} s")
        if not args.quick:
            compare(rows, rate, requirements)
    return requirements.verdict()


if __name__ == "__main__":
    sys.exit(main())
