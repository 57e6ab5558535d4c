#!/usr/bin/env python3
"""Capture and .pt2 next to transformers.exporters, capture time over the number of layers, and the zoo, in one process.

Exits with 1 and a list when a requirement is missed. `--quick` leaves out transformers.exporters, which takes minutes.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from models import tiny_qwen3
from requirements import Requirements, median, seconds, shown

import modelport

ROOT = Path(__file__).resolve().parent.parent
BATCH, SEQ = 3, 7
RUNS = 5
LEAST_CAPTURE_RATIO = 100.0
LEAST_PT2_RATIO = 50.0
MOST_SLACK = 1.3  # over linear


def inputs() -> dict[str, torch.Tensor]:
    """New tensors for each call: an exporter may change the mapping it gets."""
    ids = torch.arange(BATCH * SEQ).view(BATCH, SEQ)
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


def export_times(export: Callable[[], Any], save: Callable[[Any], Any]) -> tuple[float, float]:
    """Of an export, and of an export that is written: medians after one run that nobody counts, for us and the peer."""
    save(export())
    rows = []
    for _ in range(RUNS):
        programs: list[Any] = []
        exported = seconds(lambda programs=programs: programs.append(export()))
        rows.append((exported, exported + seconds(lambda programs=programs: save(programs[0]))))
    return statistics.median(row[0] for row in rows), statistics.median(row[1] for row in rows)


def our_times(model: torch.nn.Module, folder: Path) -> tuple[float, float]:
    config = modelport.DynamoConfig(dynamic=True)
    return export_times(
        lambda: modelport.DynamoExporter().export(model, inputs(), config),
        lambda program: program.save(folder / "ours.pt2"),
    )


def peer_times(model: torch.nn.Module, folder: Path) -> tuple[float, float]:
    from transformers.exporters.exporter_dynamo import DynamoConfig, DynamoExporter

    return export_times(
        lambda: DynamoExporter().export(model, inputs(), DynamoConfig(dynamic=True)),
        lambda program: torch.export.save(program, folder / "theirs.pt2"),
    )


def compare(layers: int, quick: bool, requirements: Requirements) -> None:
    print(f"\nQwen3, {layers} layers, hidden 64, batch {BATCH}, seq {SEQ}, dynamic")
    print(f"  both: one run to warm up, then the median of {RUNS}, in this process")
    model = tiny_qwen3(layers)
    with tempfile.TemporaryDirectory() as name:
        ours = our_times(model, Path(name))
        theirs = None if quick else peer_times(model, Path(name))
    print(f"  {'':14}{'modelport':>14}{'transformers':>16}{'ratio':>10}{'at least':>10}")
    least = {"capture": LEAST_CAPTURE_RATIO, "written as .pt2": LEAST_PT2_RATIO}
    for row, (what, wanted) in enumerate(least.items()):
        if theirs is None:
            print(f"  {what:15}{shown(ours[row]):>13}{'skipped':>16}")
            continue
        ratio = theirs[row] / ours[row]
        print(f"  {what:15}{shown(ours[row]):>13}{shown(theirs[row]):>16}{ratio:>9.0f}x{wanted:>9.0f}x")
    for row, (what, wanted) in enumerate(least.items()):
        if theirs is not None:
            ratio = theirs[row] / ours[row]
            requirements.check(f"{what} {wanted:.0f} times faster", ratio >= wanted, f"{ratio:.0f} times")


def scale(layers: list[int], requirements: Requirements) -> None:
    print("\nCapture over the number of layers")
    times: dict[int, float] = {}
    for count in layers:
        model = tiny_qwen3(count)
        times[count] = median(lambda model=model: modelport.capture(model, inputs(), dynamic=True))
        print(f"  {count:3} layers  {shown(times[count]):>12}  {1000 * times[count] / count:8.2f} ms a layer")
    first, last = layers[0], layers[-1]
    growth, most = times[last] / times[first], last / first * MOST_SLACK
    name = f"time of {last} layers at most {most:.1f} times that of {first}"
    requirements.check(name, growth <= most, f"{growth:.1f} times")


def zoo(only: int | None, requirements: Requirements) -> None:
    """Each architecture captured once, its first time: imports inside models are part of it."""
    sys.path.insert(0, str(ROOT / "tests"))
    from expected_failures import EXPECTED
    from zoo import ROWS

    print("\nThe zoo: each model captured once, dynamic")
    times: dict[str, float] = {}
    failed: dict[str, str] = {}
    for row in ROWS[:only]:
        model, example = row.build()
        start = time.perf_counter()
        try:
            modelport.capture(model, example, dynamic=True)
            times[row.name] = time.perf_counter() - start
        except Exception as error:  # whatever it is, the others are still to be measured
            failed[row.name] = f"{type(error).__name__}: {str(error).splitlines()[0]}"
    total = sum(times.values())
    print(f"  {len(times)} models captured in {shown(total)}, {len(failed)} failed")
    if times:
        slowest = max(times, key=lambda name: times[name])
        print(f"  median {shown(statistics.median(times.values()))}, slowest {shown(times[slowest])} ({slowest})")
    for name, reason in failed.items():
        print(f"  failed: {name}: {reason}")
    unexpected = sorted(set(failed) - set(EXPECTED))
    found = (
        ", ".join(unexpected) or f"{len(times)} of {len(times) + len(failed)} captured, {len(failed)} expected to fail"
    )
    requirements.check("every model of the zoo is captured but those expected to fail", not unexpected, found)


def weightless(requirements: Requirements) -> None:
    path = ROOT / "bench" / "bench_weightless.py"
    if not path.exists():
        return
    print()
    spec = importlib.util.spec_from_file_location("bench_weightless", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    arguments, sys.argv = sys.argv, [str(path)]
    try:
        good = module.main() == 0
    finally:
        sys.argv = arguments
    requirements.check("weightless capture within its limits", good, "see above")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="leave out transformers.exporters")
    parser.add_argument("--layers", type=int, default=28, help="of the model that both capture (28)")
    parser.add_argument("--scale", type=int, nargs="+", default=[7, 14, 28, 56], help="layer counts (7 14 28 56)")
    parser.add_argument("--zoo", type=int, default=None, metavar="N", help="only the first N models of the zoo")
    parser.add_argument("--no-weightless", action="store_true", help="leave out the model with the shape of 8B")
    return parser.parse_args()


def main() -> int:
    options = arguments()
    torch.set_num_threads(1)
    requirements = Requirements()
    print(f"torch {torch.__version__}, one thread")
    compare(options.layers, options.quick, requirements)
    scale(options.scale, requirements)
    zoo(options.zoo, requirements)
    if not options.no_weightless:
        weightless(requirements)
    return requirements.verdict()


if __name__ == "__main__":
    sys.exit(main())
