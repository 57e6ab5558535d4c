"""The search for a run that gives a model's graph: how often the model runs, and what the report says of it."""

from __future__ import annotations

import pytest
import torch
from tiny_models import tiny

import modelport


def names_of(captured: modelport.Captured) -> list[str]:
    return [attempt.name for attempt in captured.attempts]


@pytest.mark.parametrize("name", ["llama", "bert"])
def test_an_ordinary_model_runs_at_most_three_times(name: str) -> None:
    model = tiny(name)
    runs: list[int] = []
    model.register_forward_pre_hook(lambda *_: runs.append(1))
    inputs = {"input_ids": torch.randint(0, 64, (2, 5)), "attention_mask": torch.ones(2, 5, dtype=torch.int64)}
    captured = modelport.capture(model, inputs, dynamic=True)
    assert 1 <= len(runs) <= 3
    assert names_of(captured)[0] == "shapes only" and captured.attempts[0].outcome == "kept"
    captured.check(model, {name: value[:, :3] for name, value in inputs.items()})


def test_the_report_says_that_a_condition_was_tried_on_its_other_side_and_what_became_of_it() -> None:
    def half(x: torch.Tensor) -> torch.Tensor:
        return x * 2 if x.shape[0] > 3 else x * 3

    def same(x: torch.Tensor) -> torch.Tensor:
        return x * 2 if x.shape[0] > 3 else x + x - x + x

    for function, outcome in ((half, "makes a difference"), (same, "one graph serves both sides")):
        captured = modelport.capture(function, (torch.randn(5, 2),), dynamic=True)
        [line] = [line for line in captured.report().splitlines() if line.startswith("  at x_0 = 3")]
        assert outcome in line, captured.report()


def test_what_trials_at_large_sizes_cost_is_counted_in_runs_of_the_example() -> None:
    lengths: list[int | torch.SymInt] = []

    def in_pairs(x: torch.Tensor) -> torch.Tensor:
        lengths.append(x.shape[1])
        if x.shape[1] % 2:
            x = torch.nn.functional.pad(x, (0, -x.shape[1] % 2))
        return x.unflatten(1, (-1, 2)).sum(-1)

    example = 40_000
    captured = modelport.capture(in_pairs, (torch.randn(2, example),), dynamic=True)
    cost = sum((length / example) ** 2 for length in lengths if isinstance(length, int))
    assert cost < 200
    for length in (example + 1, 2 * example, 7):
        captured.check(in_pairs, {"x": torch.randn(3, length)})


def test_a_value_that_depends_on_a_parameter_costs_a_second_attempt_and_the_report_says_so() -> None:
    class Asks(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(4, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.linear(x)
            return y * 2 if y.sum() > 1e9 else y

    captured = modelport.capture(Asks().eval(), (torch.randn(3, 4),), dynamic=True, test_guards=False)
    assert names_of(captured) == ["shapes only", "with values"]
    assert captured.attempts[0].outcome.startswith("error[E0206]") and captured.attempts[1].outcome == "kept"
    assert "with values, because the model asks for values that depend on a parameter: kept" in captured.report()


def test_builtins_that_pin_sizes_are_tried_again_with_substitutes() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return x.new_zeros(int(x.shape[0]) + 1)

    captured = modelport.capture(function, (torch.randn(5, 2),), dynamic=True)
    assert names_of(captured)[:2] == ["shapes only", "with substitutes for builtins"]
    assert captured.run(torch.randn(9, 2)).shape == (10,)


def test_a_model_that_fails_for_exporters_is_captured_as_it_runs_for_people() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        if torch.compiler.is_exporting():
            raise ValueError("not here")
        return x * 2

    captured = modelport.capture(function, (torch.randn(5, 2),), dynamic=True, test_guards=False)
    assert names_of(captured) == ["shapes only", "with values", "as it runs for people"]
    assert "not here" in captured.attempts[0].outcome


def test_where_nothing_works_the_error_is_that_of_the_run_that_exporters_see() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        raise ValueError("for exporters" if torch.compiler.is_exporting() else "for people")

    with pytest.raises(modelport.ExportError, match="for exporters"):
        modelport.capture(function, (torch.randn(5, 2),))
