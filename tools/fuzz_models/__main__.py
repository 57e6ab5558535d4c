"""`python -m fuzz_models --programs 3000`: exit status 1 if anything is silently different."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from dataclasses import asdict
from pathlib import Path

from .pool import run_seeds
from .program import make_program
from .reducing import reduced
from .report import SILENT, alone, table
from .trying import Finding, try_seed


def main() -> int:
    parser = argparse.ArgumentParser(prog="fuzz_models", description=__doc__)
    parser.add_argument("--programs", type=int, default=3000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", type=int, help="one program: its source and every finding")
    parser.add_argument("--log", type=Path, help="every finding that is not 'same', a line of JSON each")
    parser.add_argument("--verdict", default=SILENT, help="with --seed: the program alone for the first of these")
    parser.add_argument("--reduce", action="store_true", help="with --seed: the program made as small as it goes")
    asked = parser.parse_args()
    if asked.seed is not None:
        return _one(asked.seed, asked.verdict, asked.reduce)
    return _many(range(asked.first, asked.first + asked.programs), asked.jobs, asked.log)


def _one(seed: int, verdict: str, reduce: bool) -> int:
    found = try_seed(seed)
    wanted = next((one for one in found if verdict in one.verdict), None)
    program = make_program(seed)
    if wanted is not None and reduce:
        program, wanted = reduced(program, wanted)
    print(program.source if wanted is None else alone(wanted, program))
    for one in found:
        print(f"# {one.way:18} {one.verdict:28} {'in ' if one.inside else 'out'} {one.call}  {one.what[:300]!r}")
    return int(any(one.verdict == SILENT for one in found))


def _many(seeds: range, jobs: int, log: Path | None) -> int:
    found: list[Finding] = []
    began, count = time.monotonic(), 0
    lines = log.open("w") if log else None

    def done(seed: int, its: list[Finding]) -> None:
        nonlocal count
        count += 1
        found.extend(its)
        for one in its if lines else ():
            if one.verdict != "same":
                print(json.dumps(asdict(one)), file=lines, flush=True)
        if count % 250 == 0:
            print(f"{count} programs, {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)

    run_seeds(seeds, jobs, done)
    print(table(found))
    silent = [one for one in found if one.verdict == SILENT]
    for one in list({one.seed: one for one in silent}.values())[:3]:
        print(f"\n{'-' * 100}\n{alone(one)}")
    seconds = time.monotonic() - began
    print(f"\n{len(seeds)} programs in {seconds:.0f} s, {len({one.seed for one in silent})} silently different")
    return int(bool(silent))


if __name__ == "__main__":
    sys.exit(main())
