#!/usr/bin/env python3
"""A fleet of every model of the zoo in every format: exports a minute on two cores, next to transformers' exporter.

The peer exports some models of the same zoo, at equal distances in its list, in two processes side by side that have
imported everything and have built the model: what is counted is its export alone, where it succeeds. As ours does, it
exports a model that generates in the parts that it generates with, but for pt2. Ours has imports, loading and writing
in it. Rates are by processor time, which others on the machine change little; the clock's are printed beside them.

Exits with 1 where a requirement is missed. `--models N` takes N models of the zoo, at equal distances; `--sample N`
gives the peer N of them; `--quick` leaves the peer out."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import resource
import select
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from requirements import Requirements

ROOT = Path(__file__).resolve().parent.parent
FORMATS = ("onnx", "executorch", "pt2")
JOBS = 2
LEAST_RATIO = 100.0
LEAST_SHARE = 0.95  # of exports that are not refused
SAMPLE = 6
LONGEST = 300  # processor seconds of one export of the peer; one that takes longer counts as if it were done then
FIRST = "bert"  # the peer's first export is not counted: it imports what is imported late
ONE_THREAD = {"OMP_NUM_THREADS": "1"}

Item = TypeVar("Item")


def zoo() -> list[Any]:
    sys.path.insert(0, str(ROOT / "tests"))
    from zoo import ROWS

    return list(ROWS)


def spread(rows: list[Item], count: int) -> list[Item]:
    """So many of them, at equal distances."""
    count = min(count, len(rows))
    return [rows[(2 * turn + 1) * len(rows) // (2 * count)] for turn in range(count)]


def place_of(name: str) -> str:
    return name.replace(" ", "_").replace("/", "_")


def save_zoo(rows: list[Any], folder: Path) -> Path:
    """A checkpoint for each row, and the list of them."""
    from transformers.utils import logging

    logging.disable_progress_bar()
    logging.set_verbosity_error()
    places = []
    for row in rows:
        model, _ = row.build()
        places.append(folder / "models" / place_of(row.name))
        model.save_pretrained(places[-1])
    (folder / "models.txt").write_text("".join(f"'{place}'\n" for place in places))
    return folder / "models.txt"


@dataclasses.dataclass
class Fleet:
    """A run of ours: by the clock, by the processors, and what became of each export."""

    seconds: float
    processor: float
    said: dict[str, Any]
    rows: list[dict[str, Any]]


def fleet(models: Path, out: Path) -> Fleet:
    formats = [word for form in FORMATS for word in ("--format", form)]
    command = [sys.executable, "-m", "modelport", "fleet", str(models), str(out), *formats]
    command += ["--no-check", "--jobs", str(JOBS), "--quiet", "--json"]
    start, before = time.perf_counter(), children_seconds()
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=os.environ | ONE_THREAD)
    taken, used = time.perf_counter() - start, children_seconds() - before
    rows = [json.loads(line) for line in (out / "fleet.jsonl").read_text().splitlines()]
    return Fleet(taken, used, json.loads(done.stdout), rows)


def children_seconds() -> float:
    """Of processes that have ended, and of theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


# --- the peer ---------------------------------------------------------------------------------------------------------


def export_theirs(form: str, model: Any, inputs: dict[str, Any], out: Path) -> None:
    """Writes what it makes; of a model that generates its parts, as far as a format has them."""
    from transformers.exporters.auto import AutoExportConfig, AutoHfExporter

    config = AutoExportConfig.from_dict({"export_format": "dynamo" if form == "pt2" else form, "dynamic": True})
    exporter = AutoHfExporter.from_config(config)
    if form != "pt2" and model.can_generate():
        from modelport.generation.prompts import for_generate

        parts = exporter.export_for_generation(model, for_generate(inputs), config)
    else:
        parts = {"model": exporter.export(model, inputs, config)}
    for name, part in parts.items():
        save_theirs(form, part, out / name)


def save_theirs(form: str, part: Any, file: Path) -> None:
    if form == "onnx":
        part.save(file.with_suffix(".onnx"), external_data=True)
    elif form == "pt2":
        import torch

        torch.export.save(part, file.with_suffix(".pt2"))
    else:
        file.with_suffix(".pte").write_bytes(part.buffer)


def measure_theirs(names: list[str], form: str) -> None:
    """In a process of its own: a line of JSON for each model."""
    warnings.simplefilter("ignore")
    lines = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no line of ours
    rows = {row.name: row for row in zoo()}
    with tempfile.TemporaryDirectory() as folder:
        for name in [FIRST, *names]:
            model, inputs = rows[name].build()
            start, used = time.perf_counter(), time.process_time()
            try:
                export_theirs(form, model, inputs, Path(folder))
                found = {"seconds": time.perf_counter() - start, "processor": time.process_time() - used}
            except Exception as error:
                found = {"error": f"{type(error).__name__}: {error}"[:200]}
            print(json.dumps({"name": name, **found}), file=lines, flush=True)


def theirs(names: list[str], form: str) -> list[dict[str, Any]]:
    """A row for each model. One that does not end costs its process, and another takes the rest."""
    found: list[dict[str, Any]] = []
    while len(found) < len(names):
        rest = names[len(found) :]
        command = [sys.executable, __file__, "--peer", form, *rest]
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "bufsize": 0}
        with subprocess.Popen(command, **pipes, env=os.environ | ONE_THREAD) as process:
            rows = []
            for name in [FIRST, *rest]:
                rows.append({"name": name} | answer_of(process))
                if "ended" in rows[-1]:
                    break
            process.kill()
        if len(rows) == 1:
            return found + [{"name": name, "error": f"{FIRST} before it did not end well"} for name in rest]
        found += rows[1:]
    return found


def answer_of(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    """The next line; where it takes too long, or there is none, the process has `ended`."""
    assert process.stdout is not None
    start, before = time.perf_counter(), processor_seconds(process.pid)
    while not select.select([process.stdout], [], [], 1)[0]:
        used = processor_seconds(process.pid) - before
        if used > LONGEST:
            process.kill()
            process.wait()
            return {"ended": True, "seconds": time.perf_counter() - start, "processor": used}
    line = process.stdout.readline()
    if line.endswith(b"\n"):
        return json.loads(line)
    process.wait()
    return {"ended": True, "error": f"its process ended with {process.returncode}"}


def processor_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rate(exports: int, processor: float) -> float:
    """Exports a minute on so many cores that do nothing else."""
    return JOBS * 60 * exports / processor


def compare(ours: Fleet, sample: list[str], requirements: Requirements) -> None:
    known = Counter(row["format"] for row in ours.rows if row["ok"])
    total = len(ours.rows) // len(FORMATS)
    with ThreadPoolExecutor(JOBS) as pool:
        found = dict(zip(FORMATS, pool.map(lambda form: theirs(sample, form), FORMATS), strict=True))
    good = {form: [row for row in rows if "seconds" in row] for form, rows in found.items()}
    print(f"\n  theirs: {', '.join(sample)}")
    for form, rows in good.items():
        each = sum(row["processor"] for row in rows) / len(rows) if rows else 0.0
        print(f"  {form:11} ours {known[form]} of {total}; theirs {len(rows)} of {len(sample)}, {each:.1f} s each")
        for row in found[form]:
            print(f"    {row['name']:30} {row['error'] if 'error' in row else format(row['processor'], '.1f') + ' s'}")
    times = [row for rows in good.values() for row in rows]
    if not times:
        requirements.check("the peer exports something", False, "nothing of the sample")
        return
    peer = rate(len(times), sum(row["processor"] for row in times))
    mine, ratio = rate(ours.said["made"], ours.processor), rate(ours.said["made"], ours.processor) / peer
    by_clock = 60 * ours.said["made"] / ours.seconds
    their_clock = JOBS * 60 * len(times) / sum(row["seconds"] for row in times)
    print(f"  by the clock: {by_clock:.0f} a minute next to {their_clock:.1f}, {by_clock / their_clock:.0f} times")
    text = f"{mine:.0f} exports a minute on {JOBS} cores next to {peer:.1f}: {ratio:.0f} times"
    requirements.check(f"at least {LEAST_RATIO:.0f} times transformers' exporter", ratio >= LEAST_RATIO, text)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=None, metavar="N", help="of the zoo (default: all)")
    parser.add_argument("--sample", type=int, default=SAMPLE, metavar="N", help=f"for the peer (default: {SAMPLE})")
    parser.add_argument("--quick", action="store_true", help="leave out transformers' exporter")
    parser.add_argument("--peer", metavar="FORMAT", help=argparse.SUPPRESS)
    parser.add_argument("names", nargs="*", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.peer:
        measure_theirs(args.names, args.peer)
        return 0
    requirements, every = Requirements(), zoo()
    rows = every if args.models is None else spread(every, args.models)
    with tempfile.TemporaryDirectory() as name:
        models = save_zoo(rows, Path(name))
        ours = fleet(models, Path(name) / "out")
        made, total = ours.said["made"], ours.said["total"]
        print(f"\n{made} of {total} exports of {len(rows)} models: {ours.seconds:.1f} s in {JOBS} processes, ", end="")
        print(f"{ours.processor:.1f} s of processor time, {ours.processor / max(made, 1):.3f} s each")
        requirements.check("exports that are not refused", made / total >= LEAST_SHARE, f"{100 * made / total:.1f} %")
        again = fleet(models, Path(name) / "out")
        kept = f"{again.said['kept']} kept, in {again.seconds:.1f} s"
        requirements.check("nothing is done again", again.said["made"] == 0, kept)
        if not args.quick:
            compare(ours, spread([row.name for row in every if row.name != FIRST], args.sample), requirements)
    return requirements.verdict()


if __name__ == "__main__":
    sys.exit(main())
