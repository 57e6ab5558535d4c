"""Which axes are dynamic: every form that torch.export takes, plain names, and the messages for what does not fit."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.export import Dim

import modelport


def add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x + y


def shapes(dynamic_shapes: Any, dynamic: bool = False) -> list[list[str]]:
    captured = modelport.capture(
        add, (torch.randn(3, 5), torch.randn(3, 5)), dynamic=dynamic, dynamic_shapes=dynamic_shapes
    )
    return [sizes for _, _, sizes in captured.program.inputs()]


def test_static_is_the_default() -> None:
    assert shapes(None) == [["3", "5"], ["3", "5"]]


def test_dynamic_makes_every_axis_a_symbol_and_unifies_what_the_model_demands() -> None:
    assert shapes(None, dynamic=True) == [["x_0", "x_1"], ["x_0", "x_1"]]


def test_equal_sizes_that_never_meet_stay_apart() -> None:
    captured = modelport.capture(lambda x, y: (x * 2, y * 3), (torch.randn(3, 5), torch.randn(3, 5)), dynamic=True)
    assert captured.run(torch.zeros(2, 4), torch.zeros(6, 7))[1].shape == (6, 7)


@pytest.mark.parametrize(
    "spec",
    [
        {"x": {0: "rows"}, "y": {0: "rows"}},
        {"x": {0: Dim("rows", min=2, max=64)}, "y": {0: Dim("rows", min=2, max=64)}},
        {"x": ("rows", None), "y": ["rows", None]},
        ({0: "rows"}, {0: "rows"}),
        {"x": {0: "rows", 1: Dim.STATIC}, "y": {0: Dim.AUTO}},
        {"x": {0: "rows"}, "y": {-2: "other"}},
    ],
    ids=["dict", "Dim", "tuple and list", "by position", "AUTO and STATIC", "two names that the model unifies"],
)
def test_explicit_shapes_in_every_form(spec: Any) -> None:
    assert shapes(spec) == [["rows", "5"], ["rows", "5"]]


def test_bounds_of_a_dim_are_enforced() -> None:
    rows = Dim("rows", min=2, max=6)
    captured = modelport.capture(
        add, (torch.randn(3, 5), torch.randn(3, 5)), dynamic_shapes={"x": {0: rows}, "y": {0: rows}}
    )
    assert captured.run(torch.zeros(6, 5), torch.zeros(6, 5)).shape == (6, 5)
    with pytest.raises(modelport.ExportError, match=r"rows is 7 .* 2 to 6"):
        captured.run(torch.zeros(7, 5), torch.zeros(7, 5))


def test_an_axis_that_the_user_named_and_the_model_pins_is_an_error_with_the_line() -> None:
    linear = torch.nn.Linear(5, 5).eval()
    with pytest.raises(modelport.ExportError, match=r"E0302.*axis 1 of input.*needs it to be 5") as error:
        modelport.capture(linear, {"input": torch.randn(3, 5)}, dynamic_shapes={"input": {1: "width"}})
    assert "way out" in str(error.value)


def test_an_axis_that_the_model_pins_is_reported() -> None:
    captured = modelport.capture(torch.nn.Linear(5, 5).eval(), {"input": torch.randn(3, 5)}, dynamic=True)
    assert "input_1 == 5 (pinned)" in captured.report()


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"z": {0: "rows"}}, "names an input 'z'"),
        ({"x": {2: "rows"}}, "x has no axis 2"),
        (({0: "rows"},), "1 entries for 2 inputs"),
        ({"x": {0: "no name"}}, "no name for a dimension"),
        ("rows", "neither a dict"),
    ],
)
def test_shapes_that_do_not_fit_are_refused_with_a_way_out(spec: Any, message: str) -> None:
    with pytest.raises(modelport.ExportError, match=message) as error:
        shapes(spec)
    assert error.value.code == "E0303" and "way out" in str(error.value)


class Positions(torch.nn.Module):
    """Rows of a table that is made anew for a text that is longer, whatever came before it."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("table", self.made(6))

    @staticmethod
    def made(rows: int) -> torch.Tensor:
        return torch.arange(rows).float()[:, None].sin().expand(-1, 4)

    def forward(self, text: torch.Tensor, past: torch.Tensor) -> torch.Tensor:
        table = self.made(text.shape[0] + 2) if text.shape[0] > self.table.shape[0] else self.table
        return table[torch.arange(text.shape[0]) + past.shape[0]] + text


def test_a_table_for_a_longer_text_is_not_taken_where_it_is_too_short_for_a_longer_past() -> None:
    model = Positions().eval()
    captured = modelport.capture(model, {"text": torch.randn(3, 4), "past": torch.randn(2, 4)}, dynamic=True)
    text, past = torch.randn(1, 4), torch.randn(5, 4)
    torch.testing.assert_close(captured.run(text=text, past=past), model(text, past))
