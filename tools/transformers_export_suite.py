"""Runs transformers' own export tests with Modelport's exporters in the place of theirs, and nothing skipped.

  tools/transformers_export_suite.py --tests TREE --out results.jsonl [--formats torch,onnx,executorch] [--match REGEX]
                                     [--sample N] [--split dev|held|all] [--jobs 2] [--timeout 120]

TREE is a checkout of huggingface/transformers, kept outside this repository; only its `tests` are used. The tests of a
model run in a process of their own, and each subtest (a model class, or a part of one that generates) is one line of
JSON: ok, seconds, error. What fails before an exporter is called is listed, and counts for nobody.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import hashlib
import importlib
import json
import os
import re
import signal
import sys
import tempfile
import time
import types
import unittest
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO
from unittest import mock

FORMATS = {"torch": "test_torch_export", "onnx": "test_onnx_export", "executorch": "test_executorch_export"}
VARIANTS = ("_static", "_dynamic", "_cache")  # the others are what these are made of
MIXINS = {
    "test_pipeline_mixin": "PipelineTesterMixin",
    "test_fsdp_mixin": "FSDPTesterMixin",
    "test_tensor_parallel_mixin": "TensorParallelTesterMixin",
    "test_training_mixin": "TrainingTesterMixin",
}


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tests", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--formats", default=",".join(FORMATS))
    parser.add_argument("--match", default="", help="regex on the folder of a module")
    parser.add_argument("--split", default="dev", choices=["dev", "held", "all"])
    parser.add_argument("--sample", type=int, default=1, help="every n-th module only")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--timeout", type=int, default=120, help="seconds a subtest")
    return parser.parse_args()


def in_dev_split(folder: str) -> bool:
    return int(hashlib.sha256(folder.encode()).hexdigest(), 16) % 10 < 7


def stand_in(name: str, **known: Any) -> None:
    """A module in place of one that is not installed, or that the export tests do not need."""
    module = types.ModuleType(name)
    module.__path__, module.__spec__ = [], importlib.machinery.ModuleSpec(name, None)
    module.__getattr__ = lambda wanted: mock.MagicMock(name=f"{name}.{wanted}")  # type: ignore[method-assign]
    vars(module).update(known)
    sys.modules[name] = module


def load(name: str) -> types.ModuleType:
    """Imports a module of the tree, which may be older or newer than the installed transformers."""
    for _ in range(60):
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or error.name.startswith("tests"):
                raise
            stand_in(error.name)
        except ImportError as error:
            found = re.search(r"cannot import name '([^']+)' from '([^']+)'", str(error))
            if not found or found[2].startswith("tests"):
                raise
            setattr(sys.modules[found[2]], found[1], mock.MagicMock(name=found[1]))
    raise ImportError(name)


def put_ours_in_place(tree: Path) -> None:
    """The suite's exporters are ours, its skip list is empty, and what it requires counts as installed."""
    os.environ |= {"HF_HUB_OFFLINE": "1", "RUN_SLOW": "1"}
    sys.path.insert(0, str(tree.resolve()))
    from transformers import testing_utils
    from transformers.exporters import configs

    for package in ("onnxscript", "onnxruntime", "executorch", "onnx"):
        setattr(testing_utils, f"is_{package}_available", lambda *_: True)
    for module, mixin in MIXINS.items():
        stand_in(f"tests.{module}", **{mixin: type(mixin, (), {})})
    # Their exporters import compilers that ours do without.
    stand_in("transformers.exporters.exporter_onnx", OnnxConfig=configs.OnnxConfig)
    stand_in("transformers.exporters.exporter_executorch", ExecutorchConfig=configs.ExecutorchConfig)
    suite = load("tests.exporters.test_export")
    suite.EXPORT_SKIPS.clear()
    import modelport.plugin as ours

    suite.DynamoExporter = ours.DynamoExporter
    suite.OnnxExporter = ours.OnnxExporter
    suite.ExecutorchExporter = ours.ExecutorchExporter
    load("tests.test_modeling_common")


class TimedOut(BaseException):
    """Not an Exception: tests that expect some must not take it for one."""


def on_alarm(*_: Any) -> None:
    raise TimedOut


class Rows:
    """Writes one line a subtest."""

    def __init__(self, out: TextIO, module: str, timeout: int):
        self.out, self.module, self.timeout = out, module, timeout
        self.test = ""

    def add(self, what: str, error: BaseException | None, seconds: float, stage: str = "export") -> None:
        row: dict[str, Any] = {"module": self.module, "test": self.test, "subtest": what, "ok": error is None}
        row |= {"stage": stage, "seconds": round(seconds, 2)}
        if error is not None:
            row["error"] = f"{type(error).__name__}: {error}"[:1500]
            row["at"] = where(error)
        self.out.write(json.dumps(row) + "\n")
        self.out.flush()

    @contextlib.contextmanager
    def subtest(self, what: str = "", **params: Any) -> Iterator[None]:
        start, failure = time.time(), None
        signal.alarm(self.timeout)
        try:
            yield
        except (Exception, TimedOut) as error:
            failure = error
        signal.alarm(0)
        self.add(what or str(params), failure, time.time() - start)


def where(error: BaseException) -> list[str]:
    places, step = [], error.__traceback__
    while step is not None:
        places.append(f"{Path(step.tb_frame.f_code.co_filename).name}:{step.tb_lineno}")
        step = step.tb_next
    return places[-3:]


def run_module(name: str, formats: list[str], rows: Rows) -> None:
    signal.signal(signal.SIGALRM, on_alarm)
    try:
        module = load(name)
    except Exception as error:
        return rows.add("", error, 0, "import")
    prefixes = tuple(FORMATS[name] for name in formats)
    for case_class in list(vars(module).values()):
        if not (isinstance(case_class, type) and issubclass(case_class, unittest.TestCase)):
            continue
        if case_class.__module__ == name and hasattr(case_class, "all_model_classes"):
            for test in sorted(method for method in dir(case_class) if method.startswith(prefixes)):
                if test.endswith(VARIANTS):
                    run_test(case_class, test, rows)


def run_test(case_class: type[unittest.TestCase], test: str, rows: Rows) -> None:
    rows.test = test
    start = time.time()
    try:
        case = case_class(test)
        case.test_torch_exportable = True  # type: ignore[attr-defined]
        case._skip_if_not_exportable = lambda: None  # type: ignore[attr-defined]
        case.subTest = rows.subtest  # type: ignore[method-assign]
        case.setUp()
        signal.alarm(5 * rows.timeout)
        getattr(case, test)()
    except unittest.SkipTest:
        pass
    except (Exception, TimedOut) as error:
        rows.add("", error, time.time() - start, "before the export")
    signal.alarm(0)


def in_a_process(folder: Path, args: argparse.Namespace) -> tuple[int, Path]:
    """The tests of a folder; a crash or a hang costs no others."""
    part = Path(tempfile.mkstemp()[1])
    pid = os.fork()
    if pid:
        return pid, part
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    with open(part, "w") as out:
        for path in sorted(folder.glob("test_modeling_*.py")):
            name = f"tests.models.{folder.name}.{path.stem}"
            run_module(name, args.formats.split(","), Rows(out, folder.name, args.timeout))
    os._exit(0)


def report(path: Path) -> None:
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    counted = [row for row in rows if row["stage"] in ("export", "crash")]
    for prefix in FORMATS.values():
        of_format = [row for row in counted if row["test"].startswith(prefix)]
        if of_format:
            good = sum(row["ok"] for row in of_format)
            print(f"{prefix}: {good} of {len(of_format)} subtests ({100 * good / len(of_format):.1f} %)")
    print(
        f"{len(rows) - len(counted)} tests failed before an export; {sum(r['stage'] == 'crash' for r in rows)} crashed"
    )
    causes = collections.Counter(cause(row) for row in counted if not row["ok"])
    for text, count in causes.most_common(40):
        print(f"{count:5} {text}")


def cause(row: dict[str, Any]) -> str:
    """The first line of an error without its numbers, so that equal ones are counted together."""
    lines = row["error"].strip().splitlines() or [""]
    return re.sub(r"\d+", "N", " ".join(lines[:2]))[:150]


def main() -> None:
    args = parse()
    put_ours_in_place(args.tests)
    folders = sorted({path.parent for path in args.tests.glob("tests/models/*/test_modeling_*.py")})
    folders = [folder for folder in folders if re.search(args.match, folder.name)]
    if args.split != "all":
        folders = [folder for folder in folders if in_dev_split(folder.name) == (args.split == "dev")]
    todo, running = folders[args.first :: args.sample], {}
    while todo or running:
        while todo and len(running) < args.jobs:
            folder = todo.pop(0)
            pid, part = in_a_process(folder, args)
            running[pid] = (folder, part)
        pid, status = os.wait()
        folder, part = running.pop(pid)
        with open(args.out, "a") as out:
            out.write(part.read_text())
            part.unlink()
            if status:
                row = {"module": folder.name, "test": "", "subtest": "", "ok": False, "stage": "crash"}
                out.write(json.dumps(row | {"error": f"the process ended with {status}"}) + "\n")
    report(args.out)


if __name__ == "__main__":
    main()
