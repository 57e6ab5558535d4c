"""Models whose own code asks past torch: an export gives their values, keeps to what it saw, or is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import modelport


class Model(torch.nn.Module):
    """A function as a model of its own."""

    def __init__(self, function: Callable[[torch.Tensor], Any]):
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> Any:
        return self.function(x)


def captured_of(function: Callable[[torch.Tensor], Any], x: torch.Tensor | None = None) -> Any:
    x = torch.randn(3, 4) if x is None else x
    return modelport.capture(Model(function).eval(), {"x": x}, dynamic=True)


def refusal_of(function: Callable[[torch.Tensor], Any]) -> str:
    with pytest.raises(modelport.ExportError) as error:
        captured_of(function)
    assert "E0401" in str(error.value) and "way out" in str(error.value)
    return str(error.value)


_calls = [0]


def count_calls(x: torch.Tensor) -> torch.Tensor:
    _calls[0] += 1
    return x * _calls[0]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * 2 if type(x.shape[0]) is int else x - 1,
        lambda x: x * 2 if torch.compiler.is_exporting() else x - 1,
        lambda x: x * 2 if x.is_contiguous() else x - 1,
        lambda x: x * x.stride(0),
        count_calls,
    ],
    ids=["type", "is_exporting", "is_contiguous", "stride", "counter"],
)
def test_what_a_recorder_cannot_see_is_refused_by_value(function: Callable[[torch.Tensor], Any]) -> None:
    assert "does not give the model's values" in refusal_of(function)


def pairs_of_sizes(x: torch.Tensor, sizes: torch.Tensor) -> torch.Tensor:
    factor = 1.0
    for size in (x.shape[0], sizes.tolist()[0]):
        if not isinstance(size, int | float) or isinstance(size, str | torch.Tensor):
            raise TypeError("a size has to be a number")
        size = (size, size) if isinstance(size, int) else size
        factor = factor * size[1]
    return x * factor


def test_a_size_is_a_number_to_code_that_asks() -> None:
    captured = modelport.capture(pairs_of_sizes, (torch.ones(2, 3), torch.tensor([4, 5])), dynamic=True)
    example = torch.ones(5, 3), torch.tensor([7, 5])
    torch.testing.assert_close(captured.run(*example), pairs_of_sizes(*example))
    assert "isinstance" not in globals()


class LayerBySize(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.proj_4, self.proj_7 = torch.nn.Linear(4, 4), torch.nn.Linear(7, 7)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return getattr(self, f"proj_{x.shape[1]}")(x)


def test_a_layer_that_is_found_by_the_digits_of_a_size_keeps_that_size() -> None:
    model = LayerBySize().eval()
    captured = modelport.capture(model, {"x": torch.randn(3, 4)}, dynamic=True)
    x = torch.randn(5, 4)
    torch.testing.assert_close(captured.run(x=x), model(x))
    with pytest.raises(modelport.ExportError, match="E0304"):
        captured.run(x=torch.randn(5, 7))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * len(f"{x.shape[0]}"),
        lambda x: x * {"3": 2.0, "5": 3.0}.get(str(x.shape[0]), 4.0),
        lambda x: x * {5: 7.0}.get(x.shape[0], 1.0),
        lambda x: x * (hash(x.shape[0]) % 4),
        lambda x: x * float(f"{x.abs().max().item():.1f}"),
    ],
    ids=["digits", "text as key", "missing key", "hash", "rounded text"],
)
def test_texts_and_keys_of_sizes_and_data_are_limits_where_they_matter(function: Callable[[torch.Tensor], Any]) -> None:
    captured = captured_of(function)
    for x in (torch.randn(5, 4), torch.randn(12, 4), torch.randn(3, 4) * 9):
        try:
            got = captured.run(x=x)
        except modelport.ExportError as error:
            assert error.code == "E0304"
        else:
            torch.testing.assert_close(got, function(x))


def test_a_size_in_a_message_that_nobody_reads_stays_open() -> None:
    def tell(x: torch.Tensor) -> torch.Tensor:
        message = f"{x.shape[0]} rows of {x.shape[1]:>4}"
        return x * 2 if message else x

    captured = captured_of(tell)
    assert [dim["hi"] for dim in captured.program.dims()] == [None, None]


def test_tables_by_size_that_are_made_on_demand_leave_the_size_open() -> None:
    tables: dict[int, torch.Tensor] = {}

    def table(x: torch.Tensor) -> torch.Tensor:
        size = x.shape[0]
        if size not in tables:
            tables.clear()
        return x * torch.arange(size)[:, None]

    captured = captured_of(table)
    x = torch.randn(9, 5)
    torch.testing.assert_close(captured.run(x=x), table(x))


def test_allclose_is_a_question_about_data() -> None:
    def choose(x: torch.Tensor) -> torch.Tensor:
        return x if torch.allclose(x, torch.zeros_like(x), atol=10) else x * 2

    captured = captured_of(choose)
    x = torch.randn(5, 4)
    torch.testing.assert_close(captured.run(x=x), choose(x))
    with pytest.raises(modelport.ExportError, match="E0304"):
        captured.run(x=x + 100)


def test_a_rank_that_depends_on_a_size_is_a_limit_of_it() -> None:
    captured = captured_of(lambda x: x.squeeze().sum(-1))
    with pytest.raises(modelport.ExportError, match="E0304"):
        captured.run(x=torch.randn(3, 1))


def test_an_operator_of_a_library_that_makes_a_plain_number_of_data_is_refused_with_its_name() -> None:
    with torch.library._scoped_library("modelport_own_code", "DEF") as library:
        library.define("largest(Tensor x) -> float")
        library.impl("largest", lambda x: x.max().item(), "CPU")
        with pytest.raises(modelport.ExportError) as error:
            captured_of(lambda x: x * torch.ops.modelport_own_code.largest(x))
    assert "modelport_own_code.largest" in str(error.value) and "E0204" in str(error.value)


class Masked(torch.nn.Module):
    """Two windows at least need the window before; the mask is cut to the text, never joined with it."""

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        if mask.shape[1] < x.shape[1]:
            mask = torch.nn.functional.pad(mask, (0, x.shape[1] - mask.shape[1]))
        windows = x[:, : x.shape[1] // 4 * 4].reshape(x.shape[0], -1, 4)
        before = torch.zeros_like(windows)
        if windows.shape[1] > 1:
            before[:, 1:] = windows[:, :-1]
        return (windows + before).sum(1) * mask[:, 0:1]


def test_a_mask_that_is_as_long_as_the_text_is_tried_with_it() -> None:
    model = Masked().eval()
    captured = modelport.capture(model, {"x": torch.randn(2, 7), "mask": torch.ones(2, 7)}, dynamic=True)
    x, mask = torch.randn(3, 21), torch.ones(3, 21)
    torch.testing.assert_close(captured.run(x=x, mask=mask), model(x, mask))
