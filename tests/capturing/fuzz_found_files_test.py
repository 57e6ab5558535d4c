"""Limits that torch's own loader did not hold, found by `make fuzz-models`: each reduced to what shows it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import modelport

Inputs = dict[str, torch.Tensor]


def drawn(shapes: list[tuple[int, ...]]) -> Inputs:
    return dict(zip("xy", (torch.randn(shape) for shape in shapes), strict=False))


def loaded_by_torch(model: Any, example: Inputs, folder: Path) -> Any:
    captured = modelport.capture(model, example, dynamic=True)
    modelport.ExportedProgram(captured).save(folder / "model.pt2")
    return torch.export.load(folder / "model.pt2").module()


def last_two_rows(x: torch.Tensor) -> torch.Tensor:
    return torch.split(x, 2, 0)[-1].sum(-1)[1::2]


def turns_of_the_sum(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    for _ in range(len(x) + 2 * len(y)):
        pass
    return torch.ones(len(x) // 2 + 1) * len(y)


def columns_of_what_is_padded(x: torch.Tensor) -> torch.Tensor:
    padded = torch.nn.functional.pad(x, (0, len(x) % 4))
    return torch.stack([padded.select(1, i) for i in reversed(range(padded.shape[1]))])


@pytest.mark.parametrize(
    ("model", "example", "outside"),
    [
        (last_two_rows, [(1, 3)], [(3, 3)]),
        (turns_of_the_sum, [(8, 4), (5, 4)], [(14, 4), (4, 4)]),
        (columns_of_what_is_padded, [(1, 3)], [(4, 6)]),
        (columns_of_what_is_padded, [(1, 3)], [(1, 4)]),
    ],
)
def test_a_file_refuses_in_torch_what_the_program_is_not_for(
    model: Any, example: list[tuple[int, ...]], outside: list[tuple[int, ...]], tmp_path: Path
) -> None:
    loaded = loaded_by_torch(model, drawn(example), tmp_path)
    inside = drawn(example)
    assert torch.equal(loaded(**inside), model(**inside))
    with pytest.raises((AssertionError, RuntimeError), match="Guard failed"):
        loaded(**drawn(outside))


def test_a_size_of_1_or_2_stays_open_in_torch(tmp_path: Path) -> None:
    x = torch.randn(2, 3)
    assert torch.equal(loaded_by_torch(last_two_rows, drawn([(1, 3)]), tmp_path)(x=x), last_two_rows(x))
