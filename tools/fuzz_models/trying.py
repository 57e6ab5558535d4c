"""One seed: the program is made, captured, prepared for each way to run, called, and compared with eager."""

from __future__ import annotations

import copy
import dataclasses
import importlib.util
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

import modelport

from .calls import Trial, calls
from .program import OPTIONAL, FuzzProgram, make_program
from .verdict import Verdict, difference
from .ways import OURS, WAYS, Result, capture, structured

SECONDS = 120


class TooLong(BaseException):
    """A seed that takes longer than any should."""


@dataclasses.dataclass
class Finding:
    """One call of one way, or one step before any call (`way` is then "capture", or what was prepared)."""

    seed: int
    way: str
    verdict: str
    what: str = ""
    call: str = ""
    inside: bool = False


def try_seed(seed: int) -> list[Finding]:
    with _at_most(SECONDS), tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return try_program(make_program(seed), Path(folder))
        except TooLong:
            return [Finding(seed, "capture", "hang", traceback.format_exc()[-1500:])]


def try_program(program: FuzzProgram, folder: Path, ways: list[str] | None = None) -> list[Finding]:
    make = load_source(program.source, folder)
    found: list[Finding] = []
    prepared: dict[str, Any] = {}
    try:
        captured = capture(program, make())
    except Exception as error:
        found.append(Finding(program.seed, "capture", *_refusal_before(error)))
        if getattr(error, "code", "") != "E0302" or "dynamic" in program.options:
            return found
        program.options = {"dynamic": True}  # an axis that is fixed may be so where none was asked for
        return found + try_program(program, folder, ways)
    for way in ways or WAYS:
        try:
            prepared[way] = WAYS[way](program, captured, folder)
        except Exception as error:
            found.append(Finding(program.seed, way, *_refusal_before(error, way)))
    return found + list(_called(program, captured, make, prepared))


def _called(program: FuzzProgram, captured: Any, make: Any, prepared: dict[str, Any]) -> Iterator[Finding]:
    model = make()
    for trial in calls(program, captured):
        if not program.stateful:
            model = make()
        before = copy.deepcopy(model) if program.stateful else model
        arguments = program.arguments(trial.sizes, trial.seed, trial.plain)
        try:
            with torch.no_grad():
                want = structured(model(**copy.deepcopy(arguments)))
        except Exception:
            want, model = None, before
        for way in list(prepared):
            if way == "torch.export.load" and _is_not_looked_at(program, trial):
                continue
            one = _compared(program, captured, trial, want, prepared[way], way, copy.deepcopy(arguments))
            if program.stateful and one.verdict != Verdict.SAME:
                del prepared[way]  # its state is no longer that of the model
            yield one


def _is_not_looked_at(program: FuzzProgram, trial: Trial) -> bool:
    """torch's own module ignores what is given where None was exported, in files of torch.export as well."""
    return program.plain.get(OPTIONAL, 0) is None and trial.plain.get(OPTIONAL) is not None


def _compared(
    program: FuzzProgram, captured: Any, trial: Trial, want: Result | None, call: Any, way: str, given: Any
) -> Finding:
    here = Finding(program.seed, way, Verdict.SAME, call=trial.text(program), inside=trial.inside)
    try:
        with torch.no_grad():
            got = call(given)
    except Exception as error:
        here.what = f"{type(error).__name__}: {str(error)[:600]}"
        code = getattr(error, "code", "")
        if want is None:
            here.verdict = Verdict.BOTH_FAIL
        elif way in OURS and not isinstance(error, modelport.ExportError):
            here.verdict = Verdict.BARE
        elif not trial.inside:
            here.verdict = Verdict.REFUSED
        else:
            by_data = code == "E0304" or (way not in OURS and _is_assertion(str(error)))
            here.verdict = Verdict.BY_DATA if by_data else Verdict.REFUSED_INSIDE
        return here
    if want is None:
        here.verdict = Verdict.WHERE_MODEL_FAILS
        return here
    here.what = difference(got, want, captured.in_graph)
    here.verdict = Verdict.DIFFERENT if here.what else Verdict.SAME
    return here


def _is_assertion(text: str) -> bool:
    return any(
        word in text for word in ("Runtime assertion", "assert", "Guard failed", "Expected", "branches on its data")
    )


def _refusal_before(error: Exception, way: str = "capture") -> tuple[str, str]:
    text = f"{type(error).__name__}: {str(error)[:600]}"
    if isinstance(error, modelport.ExportError) and error.diagnostics and error.diagnostics[0].get("ways_out"):
        return f"not exported ({error.code})", text
    return "not exported (bare)", text + "\n" + "".join(traceback.format_tb(error.__traceback__)[-4:])


def load_source(source: str, folder: Path) -> Any:
    """The program as a module of its own, with lines that can be read."""
    file = folder / "fuzzed_model.py"
    file.write_text(source)
    spec = importlib.util.spec_from_file_location("fuzzed_model", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module.make


@contextmanager
def _at_most(seconds: int) -> Iterator[None]:
    def too_long(*_: Any) -> None:
        raise TooLong

    before = signal.signal(signal.SIGALRM, too_long)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
