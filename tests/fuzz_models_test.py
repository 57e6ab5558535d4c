"""A short run of `make fuzz-models`, and that its verdicts can be other than good."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from fuzz_models.program import make_program
from fuzz_models.report import alone, table
from fuzz_models.trying import Finding, load_source, try_seed
from fuzz_models.verdict import Verdict, difference
from fuzz_models.ways import structured

SEEDS = range(40)


@pytest.mark.parametrize("first", SEEDS[::10])
def test_random_models_are_never_silently_different(first: int) -> None:
    found = [one for seed in range(first, first + 10) for one in try_seed(seed)]
    silent = [one for one in found if one.verdict == Verdict.DIFFERENT]
    assert not silent, table(found) + "\n" + alone(silent[0])
    assert any(one.verdict == Verdict.SAME for one in found)


def test_a_seed_gives_one_program() -> None:
    assert make_program(7).source == make_program(7).source
    assert make_program(7).source != make_program(8).source


def test_a_program_runs_at_its_example_sizes(tmp_path: Path) -> None:
    program = make_program(3)
    load_source(program.source, tmp_path)()(**program.arguments(program.sizes, 1))


def test_every_kind_of_difference_is_seen() -> None:
    want = structured({"a": torch.ones(2), "n": 3})
    for other in (torch.zeros(2), torch.ones(3), torch.ones(2, dtype=torch.float64), 1.0):
        assert difference(structured({"a": other, "n": 3}), want, [True, True])
    assert difference(structured({"a": torch.ones(2), "n": 4}), want, [True, True])
    assert difference(structured([torch.ones(2), 3]), want, [True, True])
    assert not difference(structured({"a": torch.ones(2), "n": 3}), want, [True, True])


def test_a_finding_is_printed_as_a_program_of_its_own() -> None:
    text = alone(Finding(5, "captured.run", Verdict.DIFFERENT, "values", "{}"))
    compile(text, "alone", "exec")
    assert "modelport.capture(make()" in text
