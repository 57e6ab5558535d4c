"""What every row of the zoo is exported to, byte for byte, with quick imports and without.

Run as a script it compares all rows, or those that are named: `python tests/quick_imports/zoo_files.py llama vit`.
Each row is exported in a process of its own, forked from one that imported what a command imports."""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

Digests = dict[str, list[str]]


def digests(names: list[str], plain: bool, jobs: int = 1) -> Digests:
    """For each row what its `.onnx` and its `.pt2` come to, or the code of the error."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
    environment |= {"MODELPORT_PLAIN_IMPORTS": "1"} if plain else {}
    command = [sys.executable, __file__, "--worker", "--jobs", str(jobs), *names]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def _work(names: list[str], jobs: int) -> Digests:
    from modelport.quick_imports import command

    command.allow()
    command.import_quickly()
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from zoo import ROWS

    wanted = [str(row) for row in ROWS if not names or str(row) in names]
    with multiprocessing.get_context("fork").Pool(jobs, maxtasksperchild=1) as pool:
        return dict(zip(wanted, pool.imap(_digests_of_named, wanted, chunksize=1), strict=True))


def _digests_of_named(name: str) -> list[str]:
    """A row itself may hold functions, which do not go from one process to another."""
    from zoo import ROWS

    return digests_of(next(row for row in ROWS if str(row) == name))


def digests_of(row: Any) -> list[str]:
    import modelport

    model, inputs = row.build()
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for exporter, config, name in (
            (modelport.OnnxExporter, modelport.OnnxConfig, "model.onnx"),
            (modelport.DynamoExporter, modelport.DynamoConfig, "model.pt2"),
        ):
            try:
                path = exporter().export(model, dict(inputs), config(dynamic=True)).save(Path(folder) / name)
            except modelport.ExportError as error:
                found.append(error.code)
                continue
            files = sorted(Path(folder).glob(f"{path.name}*"))
            found.append(hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest())
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="ROW")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        print(json.dumps(_work(given.names, given.jobs)))
        return 0
    quick, plain = (digests(given.names, one, given.jobs) for one in (False, True))
    differ = [name for name in plain if quick[name] != plain[name]]
    print(*(f"{name}: the files differ" for name in differ), sep="\n")
    print(f"{len(plain)} models, {len(differ)} differ")
    return 1 if differ or not plain else 0


if __name__ == "__main__":
    sys.exit(main())
