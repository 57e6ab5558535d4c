"""Graphs that differ and agreed by chance where they were compared, found by `make fuzz-models`."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from right_or_refused import right_or_refused

import modelport


def divided_by_rows_or_by_columns(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Both thirds are 2 for 4 rows and 7 columns."""
    columns = y.shape[1] if (x.shape[1] - 2) // 3 >= 0 else len(x) + 1
    return y - round(columns / 3)


@pytest.mark.parametrize("sizes", [(3, 1, 8), (4, 1, 7), (4, 2, 9), (6, 5, 2)])
def test_graphs_that_differ_by_another_axis_are_told_apart(sizes: tuple[int, int, int]) -> None:
    axes = {"x": {0: "rows", 1: "asked"}, "y": {0: "rows", 1: "columns"}}
    example = (torch.randn(4, 5), torch.randn(4, 7))
    captured = modelport.capture(divided_by_rows_or_by_columns, example, dynamic_shapes=axes)
    rows, asked, columns = sizes
    x, y = torch.randn(rows, asked), torch.randn(rows, columns)
    assert right_or_refused(divided_by_rows_or_by_columns, captured, x, y) == (asked > 1)


def largest_of_every_other(x: torch.Tensor) -> torch.Tensor:
    items = x[::2]
    most = items[0]
    for i in range(1, items.shape[0]):
        most = torch.maximum(most, items[i])
    return most


@pytest.mark.parametrize("last", [3.0, -3.0])
def test_one_more_turn_of_a_loop_is_seen_though_it_changes_little(last: float) -> None:
    captured = modelport.capture(largest_of_every_other, (torch.tensor([-1.0, 2, 0, 1, 2]),), dynamic=True)
    x = torch.tensor([0.0, 1, 2, 1, 0, 1, last])
    assert not right_or_refused(largest_of_every_other, captured, x)


def twice_or_scaled(x: torch.Tensor) -> torch.Tensor:
    return x * 0.5 if len(x) > 10 and len(x) % 2 == 0 else torch.cat([x, x])


@pytest.mark.parametrize("size", [1, 7, 8, 10, 11, 12, 13, 14, 22, 30])
def test_a_condition_that_is_asked_at_large_sizes_only_is_tried_there(size: int) -> None:
    captured = modelport.capture(twice_or_scaled, (torch.randn(7),), dynamic=True)
    right_or_refused(twice_or_scaled, captured, torch.randn(size))


def twice_or_scaled_far_away(x: torch.Tensor) -> torch.Tensor:
    return x * 0.5 if len(x) > 20 and len(x) % 2 == 0 else torch.cat([x, x])


@pytest.mark.parametrize("size", [6, 7, 14, 21, 22, 44])
def test_nor_is_it_dropped_where_it_is_far_from_the_example(size: int) -> None:
    captured = modelport.capture(twice_or_scaled_far_away, (torch.randn(7),), dynamic=True)
    right_or_refused(twice_or_scaled_far_away, captured, torch.randn(size))


def as_many_columns_as_rows(x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y[:, : len(x)] = y[:, : len(x)].flip(0)
    return y.repeat((len(x) + 2) // 2, 1, 1)


def half_of_the_last_two(x: torch.Tensor) -> torch.Tensor:
    marked = torch.zeros(x[-2:].shape)
    marked[: len(x) // 2] = 5
    return torch.cat([x, marked])


@pytest.mark.parametrize("model", [as_many_columns_as_rows, half_of_the_last_two])
@pytest.mark.parametrize("size", [1, 2, 3, 4, 6, 9])
def test_a_part_that_is_the_whole_in_the_example_is_a_part_in_files_too(model: Any, size: int) -> None:
    captured = modelport.capture(model, (torch.randint(-4, 5, (5, 2)) / 4,), dynamic=True)
    x = torch.randint(-4, 5, (size, 2)) / 4
    program = modelport.OnnxProgram(captured, modelport.OnnxConfig(), 23)
    if right_or_refused(model, captured, x):
        assert torch.equal(program(x=x)[0], model(x))
    else:
        with pytest.raises(modelport.ExportError, match="E0304"):
            program(x=x)
