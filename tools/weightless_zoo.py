#!/usr/bin/env python3
"""Saves each model of the zoo, captures it from the folder without its weights, and compares with the real capture.

Prints the share of rows whose graph is the one that real weights give, and the reasons of the rest."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
REQUIRED = 0.9
# Where a condition on a size can be decided by values only, a capture without weights keeps it.
NARROWER = "some ranges are narrower"


@dataclass
class Outcome:
    """What became of a row. `kind` is "same" where everything is as it should be, "narrower" where values that were not
    read are needed to find a graph that serves more sizes: a note says so."""

    name: str
    kind: str
    reason: str = ""
    seconds: float = 0.0


def compare(row: Any, folder: Path) -> Outcome:
    """Captures a row with its weights and from `folder` without; graphs and values must be the same."""
    import modelport

    model, inputs = row.build()
    model.save_pretrained(folder)
    try:
        real = modelport.capture(model, inputs, dynamic=True)
    except Exception as error:
        return Outcome(row.name, "no real capture", _first_line(error))
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        start = time.perf_counter()
        try:
            captured = modelport.capture(folder, inputs, dynamic=True, model_class=type(model))
        except Exception as error:
            return Outcome(row.name, "error", _first_line(error))
        seconds = time.perf_counter() - start
    read = [str(w.message) for w in heard if ": the weights are " in str(w.message)]
    if read:
        return Outcome(row.name, "weights read", read[0].split(", because ", 1)[1].splitlines()[0], seconds)
    kept = any("conditions on sizes that only values could decide" in str(w.message) for w in heard)
    same = captured.program.same_as(real.program)
    if not same and not kept:
        return Outcome(row.name, "another graph", _first_difference(str(captured), str(real)), seconds)
    try:
        captured.check(model, inputs)
    except Exception as error:
        if _fails(real, model, inputs):
            return Outcome(row.name, "same", f"neither graph runs: {_first_line(error)}", seconds)
        return Outcome(row.name, "other values", _first_line(error), seconds)
    if not same:
        return Outcome(row.name, "narrower", _first_difference(str(captured), str(real)), seconds)
    narrower = captured.program.dims() != real.program.dims()
    return Outcome(row.name, "same", NARROWER if narrower else "", seconds)


def _fails(captured: Any, model: Any, inputs: Any) -> bool:
    try:
        captured.check(model, inputs)
    except Exception:
        return True
    return False


def _first_line(error: Exception) -> str:
    lines = str(error).splitlines() or [""]
    return f"{type(error).__name__}: {' '.join(line.strip() for line in lines[:2])}"


def _first_difference(a: str, b: str) -> str:
    for one, two in zip(a.splitlines(), b.splitlines(), strict=False):
        if one != two:
            return f"{one.strip()}  |  {two.strip()}"
    return "one is longer"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="rows of the zoo; all of them if none is named")
    chosen = parser.parse_args().names
    sys.path.insert(0, str(ROOT / "tests"))
    from zoo import ROWS

    outcomes = []
    for row in ROWS:
        if chosen and row.name not in chosen:
            continue
        with tempfile.TemporaryDirectory() as folder:
            outcomes.append(compare(row, Path(folder)))
        if outcomes[-1].reason:
            print(f"{row.name}: {outcomes[-1].kind}: {outcomes[-1].reason}", flush=True)
    same = [o for o in outcomes if o.kind == "same"]
    for kind in sorted({o.kind for o in outcomes}):
        print(f"{kind:16} {sum(o.kind == kind for o in outcomes)}")
    share = len(same) / max(len(outcomes), 1)
    print(f"{len(same)} of {len(outcomes)} rows captured without their weights, {share:.1%}")
    print(f"{sum(o.reason == NARROWER for o in same)} of them with ranges that are narrower than with weights")
    print(f"{sum(o.seconds for o in outcomes):.1f} s in captures from folders")
    return 0 if share >= REQUIRED else 1


if __name__ == "__main__":
    sys.exit(main())
