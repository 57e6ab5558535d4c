"""Conditions that a program was silently lacking, found by `make fuzz-models`: each reduced to what shows it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from right_or_refused import right_or_refused

import modelport

# --- conditions on data ---------------------------------------------------------------------------------------------


def branch_on_data_behind_a_branch_on_size(ids: torch.Tensor) -> torch.Tensor:
    if len(ids) % 2 == 0:
        pass
    count = ids.sum().item() % 5 + 1
    return ids * 0.5 if count > 1 else ids - 1


@pytest.mark.parametrize("ids", [[5], [1], [5, 5], [1, 2], [1, 3, 1], [2, 2, 1, 5]])
def test_a_trial_at_another_size_keeps_the_branch_on_data(ids: list[int]) -> None:
    model = branch_on_data_behind_a_branch_on_size
    captured = modelport.capture(model, (torch.tensor([3, 4]),), dynamic=True)
    assert captured.assumptions
    right_or_refused(model, captured, torch.tensor(ids))


def wider_than_what_data_say(ids: torch.Tensor) -> torch.Tensor:
    if len(ids) % 2 == 0:
        ids = ids + 0
    count = ids.sum().item() % 5 + 2
    return ids * 1.5 if count > len(ids) else ids - 0.5


@pytest.mark.parametrize("ids", [[0], [4], [0, 0], [0, 5], [5, 5, 5], [1, 1, 1, 1]])
def test_a_condition_on_data_that_followed_from_a_size_is_kept_where_the_size_is_free(ids: list[int]) -> None:
    captured = modelport.capture(wider_than_what_data_say, (torch.tensor([5]),), dynamic=True)
    right_or_refused(wider_than_what_data_say, captured, torch.tensor(ids))


def slice_within_what_data_say(ids: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    first = y.narrow(0, 0, min(y.shape[1], 7))
    first[: ids.sum().item() % 5 + 1]
    return first.unbind(0)[-1]


@pytest.mark.parametrize("ids", [[1, 2, 3, 2], [0, 0, 0, 0], [1, 2, 3, 3]])
def test_a_condition_that_is_required_is_decided_once_though_no_proof_finds_it_again(ids: list[int]) -> None:
    y = torch.arange(32.0).reshape(4, 4, 2)
    captured = modelport.capture(
        slice_within_what_data_say,
        (torch.tensor([1, 2, 3, 0]), y),
        dynamic_shapes={"ids": {0: "s"}, "y": {0: "b", 1: "s"}},
    )
    right_or_refused(slice_within_what_data_say, captured, torch.tensor(ids), y + 1)


def other_rows_for_other_data(x: torch.Tensor) -> torch.Tensor:
    rows = x if x.long().sum().item() % 2 == 0 else x[:-2]
    return x[:, 1:] if bool(rows.shape[0] - 4) else x * 3.3


@pytest.mark.parametrize("rows", [4, 6, 7])
def test_a_trial_with_other_data_keeps_its_own_condition_on_them(rows: int) -> None:
    first = torch.tensor([[1.5, 2.0]] * 3 + [[1.0, 1.0]])
    captured = modelport.capture(other_rows_for_other_data, (first,), dynamic_shapes={"x": {0: "b"}})
    for last in ([1.0, 2.0], [1.0, 1.0]):
        right_or_refused(other_rows_for_other_data, captured, torch.tensor([[2.0, 2.5]] * (rows - 1) + [last]))


def last_rows(ids: torch.Tensor) -> torch.Tensor:
    return ids[-int((ids > 0).any()) :]


def test_rows_counted_from_the_end_by_a_number_from_data_are_none_or_all_at_zero() -> None:
    captured = modelport.capture(last_rows, (torch.tensor([1, 2, 3]),), dynamic=True)
    assert right_or_refused(last_rows, captured, torch.tensor([4, 5]))
    right_or_refused(last_rows, captured, torch.tensor([0, 0, 0]))


def twice(x: torch.Tensor) -> torch.Tensor:
    return torch.cat([x, x]) if x.shape[0] > 1 else x.repeat(2, 1)


def flag_from_data_beside_a_row_alone(x: torch.Tensor) -> torch.Tensor:
    some = (x > 0).any().item()
    return twice(x) * 2 if some else x - 1


def number_from_data_beside_a_row_alone(x: torch.Tensor) -> torch.Tensor:
    largest = x.max().item()
    return twice(x) * 2 if largest > 0.5 else x - 1


@pytest.mark.parametrize("model", [flag_from_data_beside_a_row_alone, number_from_data_beside_a_row_alone])
def test_a_trial_keeps_branches_on_bools_and_floats_of_the_data(model: Any) -> None:
    captured = modelport.capture(model, (torch.randn(2, 7).abs() + 0.6,), dynamic_shapes={"x": {0: "b", 1: "s"}})
    assert right_or_refused(model, captured, torch.randn(1, 7).abs() + 0.6)
    assert right_or_refused(model, captured, torch.randn(3, 4).abs() + 0.6)
    for rows in (1, 2, 3):
        assert not right_or_refused(model, captured, -torch.randn(rows, 5).abs())


def looked_up(ids: torch.Tensor) -> torch.Tensor:
    return ids * {0: 1.0, 1: 2.0, 2: 3.0}.get(ids[0].item(), 9.0)


@pytest.mark.parametrize("example", [1, 7, 25])
def test_a_number_from_data_that_is_looked_up_is_an_assumption(example: int) -> None:
    captured = modelport.capture(looked_up, (torch.tensor([example, 4]),), dynamic=True)
    assert right_or_refused(looked_up, captured, torch.tensor([example, 5, 6]))
    for first in (0, 1, 2, 8, 12):
        right_or_refused(looked_up, captured, torch.tensor([first, 3]))


def says_how_many(ids: torch.Tensor) -> torch.Tensor:
    count = int((ids > 0).sum())
    message = f"{count} of {ids.shape[0]} are positive"
    assert message
    return ids[ids > 0].reshape(count) * 2


def test_a_number_from_data_in_a_message_pins_nothing() -> None:
    captured = modelport.capture(says_how_many, (torch.tensor([3, -1, 4]),), dynamic=True)
    assert right_or_refused(says_how_many, captured, torch.tensor([1, 2, 3, 4, -5]))


def digits_of_a_size(x: torch.Tensor) -> torch.Tensor:
    return x * len(f"{x.shape[0]} and {x.shape[1] * 2}")


def test_a_size_in_a_text_has_its_digits() -> None:
    captured = modelport.capture(digits_of_a_size, (torch.randn(4, 7),), dynamic=True)
    assert right_or_refused(digits_of_a_size, captured, torch.randn(4, 7))
    assert not right_or_refused(digits_of_a_size, captured, torch.randn(12, 7))


def pieces_of_windows(ids: torch.Tensor) -> torch.Tensor:
    windows = ids.unfold(0, min(ids.shape[0], 2), 2)
    torch.cat([piece.flip(0) for piece in windows.split(2)])
    return torch.zeros_like(windows.select(1, 0))


def test_a_condition_that_followed_from_a_bound_is_a_limit_where_the_bound_is_gone() -> None:
    captured = modelport.capture(pieces_of_windows, (torch.randint(0, 9, (12,)),), dynamic=True)
    program = modelport.OnnxProgram(captured, modelport.OnnxConfig(), 23)
    with pytest.raises(modelport.ExportError, match="E0304"):
        program(ids=torch.randint(0, 9, (1,)))


# --- conditions between sizes ---------------------------------------------------------------------------------------


def as_many_columns_as_rows(x: torch.Tensor) -> torch.Tensor:
    return x[:, -x.shape[0] :] * 2


@pytest.mark.parametrize("example", [(3, 4), (5, 4)])
@pytest.mark.parametrize("size", [(2, 7), (4, 4), (6, 3)])
def test_more_columns_from_the_end_than_there_are(example: tuple[int, int], size: tuple[int, int]) -> None:
    captured = modelport.capture(as_many_columns_as_rows, (torch.randn(example),), dynamic=True)
    right_or_refused(as_many_columns_as_rows, captured, torch.randn(size))


def two_questions(x: torch.Tensor) -> torch.Tensor:
    if x.shape[0] > 7 and x.shape[1] % 2 == 0:
        return x * 3
    return x + 1


@pytest.mark.parametrize("size", [(13, 4), (8, 8), (3, 4), (13, 5)])
def test_a_question_that_is_asked_at_other_sizes_only_is_a_limit_there(size: tuple[int, int]) -> None:
    captured = modelport.capture(two_questions, (torch.randn(4, 7),), dynamic=True)
    right_or_refused(two_questions, captured, torch.randn(size))


def even_when_large(x: torch.Tensor) -> torch.Tensor:
    return x * 3 if len(x) > 6 and len(x) % 2 == 0 else x + 1


@pytest.mark.parametrize("size", [5, 7, 8, 9, 12])
def test_a_question_that_a_larger_size_raises_is_not_taken_for_answered(size: int) -> None:
    captured = modelport.capture(even_when_large, (torch.randn(4),), dynamic=True)
    right_or_refused(even_when_large, captured, torch.randn(size))


def long_or_short(x: torch.Tensor) -> torch.Tensor:
    return torch.view_as_real(x * 2 if len(x) > 3 else x + x)


@pytest.mark.parametrize("example", [3, 5])
@pytest.mark.parametrize("size", [1, 3, 4, 9])
def test_complex_inputs_are_tried_at_other_sizes_as_well(example: int, size: int) -> None:
    captured = modelport.capture(long_or_short, (torch.randn(example, dtype=torch.complex64),), dynamic=True)
    assert right_or_refused(long_or_short, captured, torch.randn(size, dtype=torch.complex64))


def smallest_row(x: torch.Tensor) -> torch.Tensor:
    least = x[0]
    for row in x[1:]:
        least = torch.minimum(least, row)
    return (x > least).sum(0)


def test_a_loop_over_no_rows_says_how_many_there_are() -> None:
    captured = modelport.capture(smallest_row, (torch.randn(1, 5),), dynamic_shapes={"x": {1: "s"}})
    assert right_or_refused(smallest_row, captured, torch.randn(1, 8))
    with pytest.raises(modelport.ExportError, match="E0302"):
        modelport.capture(smallest_row, (torch.randn(1, 5),), dynamic_shapes={"x": {0: "b", 1: "s"}})


def with_diagonal(x: torch.Tensor) -> torch.Tensor:
    return x.clone().fill_diagonal_(1)


def test_strides_that_torch_reads_as_numbers_are_not_taken_for_those_of_other_sizes() -> None:
    captured = modelport.capture(with_diagonal, (torch.zeros(7, 7),), dynamic=True)
    right_or_refused(with_diagonal, captured, torch.zeros(7, 8))
    right_or_refused(with_diagonal, captured, torch.zeros(5, 7))


def test_a_size_of_nothing_is_refused_by_torch_as_well(tmp_path: Path) -> None:
    def rows(x: torch.Tensor) -> torch.Tensor:
        return x * 2 if len(x) > 0 else x.long()

    program = modelport.ExportedProgram(modelport.capture(rows, (torch.randn(3, 2),), dynamic_shapes={"x": {0: "n"}}))
    program.save(tmp_path / "model.pt2")
    loaded = torch.export.load(tmp_path / "model.pt2").module()
    assert torch.equal(loaded(x=torch.ones(5, 2)), torch.full((5, 2), 2.0))
    with pytest.raises(RuntimeError, match="Guard failed: n >= 1"):
        loaded(x=torch.ones(0, 2))


# --- memory that is shared at some sizes ----------------------------------------------------------------------------


def copied_before_a_write(x: torch.Tensor) -> torch.Tensor:
    x = x.clone()
    before = x.transpose(0, 1).reshape(-1)
    x += 1
    return before * 2


def copy_that_is_written(x: torch.Tensor) -> torch.Tensor:
    x = x.clone()
    x.transpose(0, 1).contiguous().mul_(3)
    return x - 1


def some_columns_before_a_write(x: torch.Tensor) -> torch.Tensor:
    x = x.clone()
    before = x[:, :4].flatten()
    x += 1
    return before * 2


@pytest.mark.parametrize("model", [copied_before_a_write, copy_that_is_written, some_columns_before_a_write])
@pytest.mark.parametrize("size", [(3, 5), (1, 5), (4, 1), (1, 1), (3, 4), (3, 2)])
def test_a_reshape_that_copies_at_some_sizes_only_is_not_taken_for_a_copy(model: Any, size: tuple[int, int]) -> None:
    captured = modelport.capture(model, (torch.randn(3, 6),), dynamic=True)
    assert right_or_refused(model, captured, torch.randn(size)) or size != (3, 5)


@pytest.mark.parametrize("model", [copied_before_a_write, copy_that_is_written, some_columns_before_a_write])
def test_a_reshape_that_copies_at_some_sizes_only_is_not_taken_for_a_view(model: Any) -> None:
    with pytest.raises(modelport.ExportError, match="E0302"):
        modelport.capture(model, (torch.randn(1, 5),), dynamic_shapes={"x": {0: "b", 1: "s"}})


def rows_in_place(x: torch.Tensor) -> torch.Tensor:
    y = x.transpose(0, 1).reshape(-1)
    y += 1  # of `x` at some sizes, which nobody reads again
    return y * 2


@pytest.mark.parametrize("size", [(3, 5), (1, 5), (4, 1)])
def test_what_is_shared_is_no_condition_where_nobody_sees_the_write(size: tuple[int, int]) -> None:
    captured = modelport.capture(rows_in_place, (torch.randn(3, 6),), dynamic=True)
    x = torch.randn(size)
    assert torch.equal(captured.run(x.clone()), rows_in_place(x.clone()))


# --- writes to plain memory -----------------------------------------------------------------------------------------


def first_half_of_a_table(x: torch.Tensor) -> torch.Tensor:
    table = torch.zeros(4)
    table[: len(x) // 2] = 5
    return table


def part_of_a_part(x: torch.Tensor) -> torch.Tensor:
    table = torch.zeros(9)
    middle = table[2:6]
    middle[: len(x) // 2].fill_(5)
    return torch.cat([table, middle])


def written_behind_a_view(x: torch.Tensor) -> torch.Tensor:
    table = torch.zeros(6)
    first = table[: len(x)]
    table[0] = 5
    return torch.cat([first, table])


def two_views_of_a_table(x: torch.Tensor) -> torch.Tensor:
    table = torch.arange(8.0)
    first, last = table[: len(x)], table[len(x) // 2 :]
    last[:1] = 100
    total = table.sum()
    first += 1
    return torch.cat([first, last, table, total[None]])


@pytest.mark.parametrize("model", [first_half_of_a_table, part_of_a_part, written_behind_a_view, two_views_of_a_table])
def test_a_write_through_a_view_of_symbolic_size_is_seen_in_memory_that_was_plain(model: Any) -> None:
    captured = modelport.capture(model, (torch.ones(3),), dynamic=True)
    assert all(right_or_refused(model, captured, torch.ones(size)) for size in range(1, 6))


# --- what a model keeps from call to call ---------------------------------------------------------------------------


class CountsItsCalls(torch.nn.Module):
    calls = 0

    def forward(self, x: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        first = min(max(ids.tolist()[0], 1), 3)
        self.calls += 1
        return x * self.calls + first


@pytest.mark.parametrize("example", [torch.randn(3), torch.zeros(3)])
def test_a_count_of_calls_is_refused_however_often_the_model_is_captured(example: torch.Tensor) -> None:
    with pytest.raises(modelport.ExportError, match="keeps calls from call to call"):
        modelport.capture(CountsItsCalls().eval(), (example, torch.tensor([2, 5])), dynamic=True)


class KeepsATable(torch.nn.Module):
    """As LeViT does of timm: what follows from a weight alone is computed once. `of_data`: what follows from the first
    text is taken for all others."""

    def __init__(self, *, of_data: bool):
        super().__init__()
        self.bias = torch.nn.Parameter(torch.randn(4, 6))
        self.of_data = of_data
        self.tables: dict[str, torch.Tensor] = {}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if "cpu" not in self.tables:
            self.tables["cpu"] = x.flip(0) if self.of_data else self.bias[:, torch.tensor([0, 2, 5])]
        return x.sum(-1, keepdim=True) + self.tables["cpu"]


def test_a_table_that_is_made_once_is_part_of_the_graph() -> None:
    model = KeepsATable(of_data=False).eval()
    captured = modelport.capture(model, (torch.randn(4, 5),), dynamic=True)
    assert not model.tables
    x = torch.randn(4, 7)
    torch.testing.assert_close(captured.run(x), model(x))


def test_what_the_first_text_left_behind_is_refused() -> None:
    with pytest.raises(modelport.ExportError, match="keeps tables from call to call"):
        modelport.capture(KeepsATable(of_data=True).eval(), (torch.randn(4, 3),), dynamic=True)
