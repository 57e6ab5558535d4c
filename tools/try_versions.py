#!/usr/bin/env python3
"""Tries the oldest and the newest pair of torch and transformers: a wheel, the doctor, a part of the zoo.

Writes the table in docs/COMPATIBILITY.md, and fails where values differ or an export does. `--pair oldest` tries one;
the rows of the other stay as they are. ExecuTorch's wheel is built for one torch: where its runtime does not load, the
table says "no runtime", which is no failure."""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys

from build_wheel import ROOT, VERSIONS, build, environment, install
from list_requirements import requirements

PAIRS = {"oldest": ("2.11.0", "5.13.0"), "newest": ("2.15.0", "5.22.0")}
FORMATS = ("pt2", "onnx", "pte")
FINE = ("same values", "no runtime")
TABLE = ROOT / "docs" / "COMPATIBILITY.md"
BEGIN, END = "<!-- begin of what make test-versions writes -->", "<!-- end of what make test-versions writes -->"


def is_fine(form: str, outcome: str) -> bool:
    """ExecuTorch has no kernels for some models, whatever the versions: a refusal to write is no failure there."""
    return outcome in FINE or (
        form == "pte" and re.fullmatch(r"E0[23]\d\d", outcome) is not None and outcome != "E0301"
    )


def tried(torch: str, transformers: str, rows: list[str]) -> list[dict[str, str]]:
    """What came of each row, beside this pair."""
    wheel = build(torch, VERSIONS / "wheels")
    python = environment(torch)
    install(python, f"transformers=={transformers}", *requirements(ROOT / "pyproject.toml", "onnx"), "scipy", "pytest")
    install(python, "--no-deps", "--force-reinstall", str(wheel))
    folder = python.parent.parent  # not the root, where Python would find the sources
    one_thread = os.environ | {"OMP_NUM_THREADS": "1"}
    subprocess.run([str(python), "-m", "modelport", "doctor"], cwd=folder, env=one_thread, check=True)
    command = [str(python), str(ROOT / "tests" / "version_sample.py"), *rows]
    found = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=folder, env=one_thread) as running:
        assert running.stdout is not None
        for line in running.stdout:
            if line.startswith("{"):
                found.append(json.loads(line))
                print(line, end="", flush=True)
    if running.returncode:
        raise subprocess.CalledProcessError(running.returncode, command)
    return found


def written(text: str, results: dict[str, list[dict[str, str]]]) -> str:
    """The page with the table of the results in the place of the one before."""
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    kept = _read(rest.split(END)[0])
    merged = {
        pair: {row["row"]: row for row in results[pair]} if pair in results else kept.get(pair, {}) for pair in PAIRS
    }
    return f"{before}{BEGIN}\n{_table(merged)}{END}{after}"


def _table(results: dict[str, dict[str, dict[str, str]]]) -> str:
    heads = [f"{form}, {pair}" for pair in PAIRS for form in FORMATS]
    lines = [f"| model | {' | '.join(heads)} |", f"|---|{'---|' * len(heads)}"]
    for name in dict.fromkeys(name for rows in results.values() for name in rows):
        cells = [results[pair].get(name, {}).get(form, "not tried") for pair in PAIRS for form in FORMATS]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _read(table: str) -> dict[str, dict[str, dict[str, str]]]:
    found: dict[str, dict[str, dict[str, str]]] = {pair: {} for pair in PAIRS}
    for line in table.strip().splitlines()[2:]:
        name, *cells = (cell.strip() for cell in line.strip("| ").split("|"))
        for index, pair in enumerate(PAIRS):
            of_pair = cells[index * len(FORMATS) : (index + 1) * len(FORMATS)]
            if "not tried" not in of_pair:
                found[pair][name] = {"row": name, **dict(zip(FORMATS, of_pair, strict=True))}
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", metavar="ROW", help="rows of the zoo; nothing is written then")
    parser.add_argument("--pair", choices=PAIRS, help="one of the two")
    given = parser.parse_args()
    results = {pair: tried(*PAIRS[pair], given.rows) for pair in PAIRS if given.pair in (None, pair)}
    if not given.rows:
        TABLE.write_text(written(TABLE.read_text(), results))
    wrong = [
        f"{pair}: {row['row']} as {form}: {row[form]}"
        for pair, rows in results.items()
        for row in rows
        for form in FORMATS
        if not is_fine(form, row[form])
    ]
    print("\n".join(wrong) or "all rows have the values of eager PyTorch")
    return 1 if wrong else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)
