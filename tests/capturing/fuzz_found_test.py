"""Differences that `make fuzz-models` found, each reduced to the program that shows it and grouped by cause."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import modelport

# --- shapes that are learned ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", [8, 9, 64])
def test_an_operator_whose_size_is_rounded_down_is_not_taken_for_one_of_constant_size(at: int) -> None:
    library = torch.library.Library("modelport_every_fourth", "FRAGMENT")
    library.define(f"at{at}(Tensor x) -> Tensor")
    library.impl(f"at{at}", lambda x: x[: len(x) // 4].clone(), "CPU")
    library.impl(f"at{at}", lambda x: x.new_empty(len(x) // 4), "Meta")
    operator = getattr(torch.ops.modelport_every_fourth, f"at{at}")
    with pytest.raises(modelport.ExportError, match="E0201"):
        modelport.capture(lambda x: operator(x) + 1, (torch.ones(at),), dynamic=True)


# --- models that are not in a module --------------------------------------------------------------------------------


def test_a_model_whose_class_is_in_no_module_is_captured() -> None:
    names: dict[str, Any] = {"__name__": "nowhere", "torch": torch}
    exec("class Twice(torch.nn.Module):\n    def forward(self, x):\n        return x * 2", names)
    captured = modelport.capture(names["Twice"]().eval(), (torch.ones(3),))
    assert captured.run(torch.ones(3)).tolist() == [2, 2, 2]


# --- conditions that another one made needless ------------------------------------------------------------------------


def windows_beside_a_cut(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    _ = x[:, : len(y)]  # asks for len(y) >= 5, which makes no difference
    return y.unfold(0, min(y.shape[-2], 3), 3)


def test_what_followed_from_a_condition_that_goes_stays() -> None:
    axes = {"x": {0: "s"}, "y": {0: "t"}}
    example = torch.randn(7, 4), torch.randn(6, 4)
    captured = modelport.capture(windows_beside_a_cut, example, dynamic_shapes=axes)
    assert torch.equal(captured.run(example[0], example[1][:4]), windows_beside_a_cut(example[0], example[1][:4]))
    program = modelport.OnnxProgram(captured, modelport.OnnxConfig(), 23)
    for run in (captured.run, program):
        with pytest.raises(modelport.ExportError, match="the program is right for 3 or more"):
            run(x=example[0], y=example[1][:1])


# --- long sums of sizes ---------------------------------------------------------------------------------------------


def same_everywhere(function: Callable[..., Any], captured: Any, inputs: dict[str, Any], folder: Path) -> None:
    """The interpreter, `.pt2` in torch and here, and ONNX give what the function gives."""
    modelport.ExportedProgram(captured).save(folder / "model.pt2")
    program = modelport.OnnxProgram(captured, modelport.OnnxConfig(), 23)
    results = {
        "captured.run": captured.run(**inputs),
        "load_pt2": modelport.load_pt2(folder / "model.pt2").run(**inputs),
        "torch": torch.export.load(folder / "model.pt2").module()(**inputs),
        "onnx": program(**inputs)[0],
    }
    want = function(**inputs)
    for way, got in results.items():
        assert got.shape == want.shape and torch.allclose(got, want), way


def test_a_sum_of_hundreds_of_numbers_from_data_is_read_back_by_torch(tmp_path: Path) -> None:
    def function(x: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        total = 0
        for number in k.tolist():
            total = total + number
        return x + total

    shapes = {"x": {0: "rows"}, "k": None}
    captured = modelport.capture(function, (torch.ones(7), torch.arange(300)), dynamic_shapes=shapes)
    same_everywhere(function, captured, {"x": torch.ones(5), "k": torch.arange(300) + 1}, tmp_path)


# --- cells of ONNX that an optimizer of onnxruntime reads otherwise -------------------------------------------------


@pytest.mark.parametrize("first_to_last", [(-1, -1), (-2, 1)], ids=["downwards", "from below zero"])
def test_rows_taken_at_places_below_zero(first_to_last: tuple[int, int], tmp_path: Path) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        first, step = first_to_last
        places = torch.arange(x.shape[0] - 1, -1, -1) if step < 0 else torch.arange(first, x.shape[0] - 2)
        return x.index_select(0, places % x.shape[0] if step > 0 else places)

    captured = modelport.capture(function, (torch.arange(5.0),), dynamic=True)
    same_everywhere(function, captured, {"x": torch.arange(7.0)}, tmp_path)


# --- numbers of Python ----------------------------------------------------------------------------------------------


def test_linspace_of_one_step_is_its_start(tmp_path: Path) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.linspace(1, 3, max(x.shape[0] - 2, 1))

    captured = modelport.capture(function, (torch.ones(8),), dynamic=True)
    for rows in (3, 4, 5, 9):
        folder = tmp_path / str(rows)
        folder.mkdir()
        same_everywhere(function, captured, {"x": torch.ones(rows)}, folder)


def test_the_magnitude_of_a_size_stays_open(tmp_path: Path) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return x * abs(x.shape[0] - 5) + abs(x.shape[0] / 2 - 3)

    captured = modelport.capture(function, (torch.ones(8),), dynamic=True)
    same_everywhere(function, captured, {"x": torch.ones(3)}, tmp_path)


# --- what trials leave behind ---------------------------------------------------------------------------------------


class Counter(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls.add_(1)
        return torch.cat([piece * 2 for piece in x.split(2)]) + self.calls


def test_a_capture_that_runs_the_model_leaves_its_buffers_as_they_were() -> None:
    model = Counter().eval()
    captured = modelport.capture(model, (torch.ones(5),), dynamic=True)
    assert model.calls == 0
    assert [captured.run(torch.zeros(5))[0].item() for _ in range(2)] == [1, 2]


# --- operators in place whose functional form has another overload --------------------------------------------------


@pytest.mark.parametrize("written", [" //= 2", " //= y", " **= 2", " **= y", ".float_power_(2)", ".float_power_(y)"])
def test_an_operator_in_place_is_recorded_as_the_functional_one_that_takes_the_same(
    written: str, tmp_path: Path
) -> None:
    names: dict[str, Any] = {}
    exec(f"def function(x, y):\n    x = x.double() * 2\n    x{written}\n    return x", names)
    function = names["function"]
    captured = modelport.capture(function, {"x": torch.ones(4), "y": torch.ones(4)}, dynamic=True)
    inputs = {"x": torch.tensor([1.0, 2.5, 3.0]), "y": torch.tensor([2.0, 1.0, 3.0])}
    same_everywhere(function, captured, inputs, tmp_path)


def test_divmod_of_a_size_stays_open(tmp_path: Path) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        whole, rest = divmod(x.shape[0], 3)
        return x * whole + rest + divmod(17, x.shape[0])[1]

    captured = modelport.capture(function, (torch.ones(8),), dynamic=True)
    same_everywhere(function, captured, {"x": torch.ones(4)}, tmp_path)


# --- products and divisions of nothing ------------------------------------------------------------------------------


@pytest.mark.parametrize("layer", [torch.nn.Linear(0, 3), torch.nn.Linear(0, 0, bias=False), torch.nn.Linear(4, 0)])
@pytest.mark.parametrize("rows", [(2,), (2, 3)])
def test_a_layer_of_size_0_is_loaded_by_onnxruntime(layer: torch.nn.Linear, rows: tuple[int, ...]) -> None:
    x = torch.randn(*rows, layer.in_features)
    captured = modelport.capture(layer.eval(), (x,), dynamic_shapes={"input": {0: "b"}})
    got = modelport.OnnxProgram(captured, modelport.OnnxConfig(), 23)(input=x)[0]
    assert torch.equal(got, layer(x))


def some_rows_times_a_vector(x: torch.Tensor) -> torch.Tensor:
    rows = x.repeat(int((x > 0).sum().item()), 1)
    return rows @ x


def test_no_rows_times_a_vector_are_no_numbers(tmp_path: Path) -> None:
    captured = modelport.capture(some_rows_times_a_vector, (torch.ones(4),))
    for inputs in ({"x": torch.tensor([1.0, 2, -3, 4])}, {"x": -torch.ones(4)}):
        same_everywhere(some_rows_times_a_vector, captured, inputs, tmp_path)


def products_of_what_is_left(x: torch.Tensor) -> torch.Tensor:
    part = x[:, :, x.shape[2] % 5 : x.shape[2] - x.shape[2] % 2]
    return torch.einsum("bij,bkj->bik", part, part) + part @ part.mT + (part[0, 0] @ part[1, 0])


@pytest.mark.parametrize("width", [3, 5, 12])
def test_products_over_an_axis_that_may_be_empty_are_zero_where_it_is(width: int, tmp_path: Path) -> None:
    captured = modelport.capture(products_of_what_is_left, (torch.randn(2, 4, 12),), dynamic=True)
    same_everywhere(products_of_what_is_left, captured, {"x": torch.randint(-4, 5, (2, 4, width)) / 4}, tmp_path)


def test_integers_divided_by_the_number_zero_are_refused_by_onnx() -> None:
    captured = modelport.capture(lambda x: x[:0].long() % 0, (torch.ones(4),))
    with pytest.raises(modelport.ExportError, match="integers are divided by the number zero"):
        modelport.OnnxProgram(captured, modelport.OnnxConfig(), 23)
