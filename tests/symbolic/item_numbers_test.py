"""Plain numbers that model code makes of each item: decisions that come out the same for all items leave their number
open, in Python's own precision, and a call with items for which they come out otherwise is refused."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch

import modelport
from modelport import ExportError

RESOLUTIONS = [(4, 4), (4, 8), (8, 4)]
NEWLINE = torch.full((1, 3), 7.0)


def draw(*sizes: int) -> torch.Tensor:
    return torch.randn(sizes, generator=torch.Generator().manual_seed(sum(sizes)))


def best_of(size: list[int]) -> tuple[int, int]:
    """The resolution that leaves most of a picture, and of those the smallest."""
    best, most, least = (0, 0), 0, math.inf
    for height, width in RESOLUTIONS:
        scale = min(width / size[1], height / size[0])
        kept = min(int(size[1] * scale) * int(size[0] * scale), size[0] * size[1])
        wasted = height * width - kept
        if kept > most or (kept == most and wasted < least):
            best, most, least = (height, width), kept, wasted
    return best


def number_of_patches(size: torch.Tensor) -> int:
    height, width = best_of(size.tolist())
    return (height // 4) * (width // 4) + 1


def packed(patches: torch.Tensor, sizes: torch.Tensor) -> torch.Tensor:
    """Pictures that were cut into as many patches as their sizes ask for, without what they were padded with."""
    counts = [number_of_patches(size) for size in sizes]
    pieces = torch.split(torch.cat([x[:count] for x, count in zip(patches, counts, strict=False)]), counts, dim=0)
    out = []
    for number, piece in enumerate(pieces):
        height, width = (x // 4 for x in best_of(sizes[number].tolist()))
        grid = piece[1:].view(height, width, 4, 4, -1).permute(4, 0, 2, 1, 3).flatten(1, 2).flatten(2, 3)
        original_height, original_width = sizes[number].tolist()
        new_height = int(round(original_height * (grid.shape[2] / original_width), 7))
        padding = (grid.shape[1] - new_height) // 2
        grid = grid[:, padding : grid.shape[1] - padding]
        if math.sqrt(grid.shape[1] * grid.shape[2] / 16) > 1.9:
            grid = grid * 2
        rows = torch.cat([grid.flatten(1, 2).transpose(0, 1), NEWLINE])
        out.append(torch.cat([piece[0], rows]))
    return torch.cat(out)


def told_apart(x: torch.Tensor, sizes: torch.Tensor) -> torch.Tensor:
    """As model code does that takes sizes as tensors and as lists of numbers."""
    out = []
    for i in range(x.shape[0]):
        size = sizes[i]
        if not isinstance(size, list | tuple):
            if not isinstance(size, torch.Tensor):
                raise TypeError("neither numbers nor a tensor")
            size = size.tolist()
        if not isinstance(size[0], int):
            raise TypeError("no whole numbers")
        out.append(x[i] * (size[0] / size[1]))
    return torch.stack(out)


def halved(x: torch.Tensor, sizes: torch.Tensor) -> torch.Tensor:
    return torch.stack([row * (size.item() / 3) for row, size in zip(x, sizes, strict=False)])


def cut_alike(x: torch.Tensor, sizes: torch.Tensor) -> torch.Tensor:
    """Only a plain number of each size, the same for all, meets what belongs to it."""
    return torch.stack([row[: best_of(size.tolist())[0] // 2] for row, size in zip(x, sizes, strict=False)])


def rounded(x: torch.Tensor, sizes: torch.Tensor) -> torch.Tensor:
    numbers = zip(x, sizes, strict=False)
    return torch.stack(
        [row + math.ceil(s.item() / 3) - math.floor(s.item() / 4) + round(s.item() / 7) for row, s in numbers]
    )


def chosen(x: torch.Tensor, sizes: torch.Tensor) -> torch.Tensor:
    factors = [1.0, 2.0, 3.0, 4.0]
    return torch.stack([x[i] * factors[int(sizes[i])] for i in range(x.shape[0])])


def pictures(count: int, height: int = 3, width: int = 4) -> tuple[torch.Tensor, torch.Tensor]:
    return draw(count, 3, 16, 3), torch.tensor([[height, width]] * count)


@pytest.mark.parametrize("height, width", [(3, 4), (3, 8), (4, 7)])
def test_pictures_of_one_kind_are_packed_however_many_there_are(height: int, width: int) -> None:
    captured = modelport.capture(packed, pictures(3, height, width), dynamic=True)
    for count in (3, 5):
        torch.testing.assert_close(
            captured.run(*pictures(count, height, width)), packed(*pictures(count, height, width))
        )


def test_pictures_of_another_kind_are_refused() -> None:
    captured = modelport.capture(packed, pictures(3), dynamic=True)
    with pytest.raises(ExportError, match="E0304"):
        captured.run(*pictures(4, 8, 4))


@pytest.mark.parametrize("function", [halved, rounded], ids=lambda function: function.__name__)
def test_numbers_of_items_are_as_precise_as_those_of_python(function: Callable[..., torch.Tensor]) -> None:
    captured = modelport.capture(function, (draw(3, 2), torch.tensor([10, 20, 70])), dynamic=True)
    for sizes in ([10, 20, 70], [16777217, 33554433, 7, 9, 21]):
        example = draw(len(sizes), 2), torch.tensor(sizes)
        torch.testing.assert_close(captured.run(*example), function(*example), rtol=0, atol=0)


def test_items_that_are_gone_through_together_are_as_many() -> None:
    captured = modelport.capture(cut_alike, pictures(3), dynamic=True)
    for count in (3, 5):
        torch.testing.assert_close(captured.run(*pictures(count)), cut_alike(*pictures(count)), rtol=0, atol=0)
    with pytest.raises(ExportError, match="E0304"):
        captured.run(pictures(5)[0], pictures(4)[1])


def test_an_item_is_a_tensor_to_model_code_and_its_numbers_are_numbers() -> None:
    captured = modelport.capture(told_apart, (draw(3, 2), torch.tensor([[1, 3], [2, 7], [5, 5]])), dynamic=True)
    example = draw(4, 2), torch.tensor([[1, 3], [2, 7], [5, 5], [9, 11]])
    torch.testing.assert_close(captured.run(*example), told_apart(*example), rtol=0, atol=0)


def test_a_choice_that_is_the_same_for_all_items_leaves_their_number_open() -> None:
    captured = modelport.capture(chosen, (draw(3, 2), torch.tensor([2, 2, 2])), dynamic=True)
    example = draw(5, 2), torch.tensor([2] * 5)
    torch.testing.assert_close(captured.run(*example), chosen(*example))
    with pytest.raises(ExportError, match="E0304"):
        captured.run(draw(5, 2), torch.tensor([2, 2, 1, 2, 2]))


def test_choices_that_differ_between_items_stay_a_loop() -> None:
    captured = modelport.capture(chosen, (draw(3, 2), torch.tensor([2, 0, 1])), dynamic=True)
    example = draw(3, 2), torch.tensor([2, 0, 1])
    torch.testing.assert_close(captured.run(*example), chosen(*example))
    with pytest.raises(ExportError):
        captured.run(draw(5, 2), torch.tensor([2, 0, 1, 0, 0]))
