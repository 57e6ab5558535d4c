"""Loops over items whose number stays open: what is done to one item is done to all at once, and gives what the loop
gives, also for other numbers of items; loops in which items depend on each other stay as they are."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch

import modelport
from modelport import ExportError
from modelport.symbolic.ragged import Packed, joined_within

Example = tuple[torch.Tensor, ...]


def draw(*sizes: int) -> torch.Tensor:
    return torch.randn(sizes, generator=torch.Generator().manual_seed(sum(sizes)))


LENGTHS = (torch.tensor([2, 5, 3]), torch.tensor([1, 7, 4, 6]))
GRIDS = (torch.tensor([[2, 4], [4, 2], [2, 2]]), torch.tensor([[4, 4], [2, 6], [2, 2], [6, 2]]))
WEIGHT, TABLE, FILTERS = draw(4, 6), draw(1, 3, 4, 4), draw(5, 3, 2, 2)


def stacked(x: torch.Tensor) -> torch.Tensor:
    out = []
    for i in range(x.shape[0]):
        out.append(torch.nn.functional.linear(x[i], WEIGHT).softmax(-1).mean(0))
    return torch.stack(out)


def iterated(x: torch.Tensor) -> torch.Tensor:
    return torch.stack([row.transpose(0, 1).flatten() * 2 for row in x], dim=1)


def written(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(len(x)):
        out[i] = x[i].cumsum(0)
    return out


def cut(x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    return torch.cat([row[:length] for row, length in zip(x, lengths, strict=False)])


def cut_by_numbers(x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    return torch.cat([row[: int(length)] + 1 for row, length in zip(x, lengths, strict=False)])


def cut_at_the_end(x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    return torch.cat([torch.cat([row[1:length], row[:1] * 3]) for row, length in zip(x, lengths, strict=False)])


def padded(x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    rows = [row[:length] for row, length in zip(x, lengths, strict=False)]
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=-1.0)


def averaged(x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    return torch.stack([row[:length].mean(0) for row, length in zip(x, lengths, strict=False)])


def masked(x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    out = []
    for i in range(x.shape[0]):
        kept = torch.arange(x.shape[1]) < lengths[i]
        out.append(x[i][kept] * lengths[i])
    return torch.cat(out)


def numbered(x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    out = []
    for i, row in enumerate(x):
        out.append(row[: lengths[i]])
    return torch.cat(out)


def in_pieces(x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    return torch.cat([piece.sum(-1).sqrt() for piece in torch.split(x.abs(), lengths.tolist())])


def merged(patches: torch.Tensor, grids: torch.Tensor) -> torch.Tensor:
    """Patches of images one after the other, four of a block joined, as models that see do it."""
    start, out = 0, []
    for i in range(len(grids)):
        height, width = grids[i]
        image = patches[start : start + height * width].view(height // 2, 2, width // 2, 2, -1)
        out.append(image.permute(0, 2, 1, 3, 4).reshape(height // 2 * (width // 2), 4 * patches.shape[-1]))
        start += height * width
    return torch.cat(out)


def with_ends_of_lines(x: torch.Tensor, grids: torch.Tensor) -> torch.Tensor:
    out = []
    for image, (height, width) in zip(x, grids, strict=False):
        image = image[: int(height), : int(width)]
        out.append(torch.cat([image, torch.ones(image.shape[0], 1) * 7], dim=-1).flatten())
    return torch.cat(out)


def coordinates(grids: torch.Tensor) -> torch.Tensor:
    out = []
    for height, width in grids.tolist():
        out.append((torch.arange(height)[:, None] / height + torch.arange(width) / width).flatten())
    return torch.cat(out)


def split_and_padded(x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    pieces = x.split(lengths.tolist(), dim=0)
    if x.shape[0] != sum(lengths.tolist()):
        raise ValueError("lengths do not fit")
    return torch.nn.utils.rnn.pad_sequence(pieces, batch_first=True)


def with_a_list_of_defaults(x: torch.Tensor) -> torch.Tensor:
    extra, scales = [None] * x.shape[0], [2.0] * len(x)
    out = []
    for i, scale in enumerate(scales):
        out.append(x[i] * scale if extra[i] is None else x[i] + extra[i])
    return torch.stack(out)


def points(pictures: torch.Tensor) -> torch.Tensor:
    """What is found in each picture, as many points as there are, in the rows of a padded tensor."""
    kernel = torch.ones(2, pictures.shape[1], 3, 3) / 9
    found = []
    for picture in pictures:
        scores = torch.nn.functional.max_pool2d(torch.nn.functional.conv2d(picture[None], kernel, padding=1)[0], 1)
        places = torch.nonzero(scores[0] > 0)
        grid = (torch.flip(places, [1]).float() / 4 - 1)[None]
        sampled = torch.nn.functional.grid_sample(picture[None], grid.view(1, 1, -1, 2), align_corners=True)
        features = torch.nn.functional.normalize(sampled.reshape(1, pictures.shape[1], -1), dim=1)[0].transpose(0, 1)
        found.append((places, scores[0][tuple(places.t())], features))
    most = max(places.shape[0] for places, _, _ in found)
    rows = torch.zeros(pictures.shape[0], most, 3 + pictures.shape[1])
    mask = torch.zeros(pictures.shape[0], most)
    for i, (places, scores, features) in enumerate(found):
        rows[i, : places.shape[0]] = torch.cat([places.to(features), scores[:, None], features], dim=1)
        mask[i, : scores.shape[0]] = 1
    return torch.cat([rows, mask[..., None]], dim=-1)


def best_of(x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(x.shape[0], 3)
    for i, row in enumerate(x):
        values, at = torch.topk(row[: lengths[i], 0], 1)
        out[i, :1], out[i, 1:] = values, row[at][0]
    return out


def merged_by_filters(patches: torch.Tensor, grids: torch.Tensor) -> torch.Tensor:
    """A table of positions in the size of each image, added to its patches, and every four joined by a filter."""
    positions, out = [], []
    for height, width in grids:
        resized = torch.nn.functional.interpolate(TABLE, size=(height, width), mode="bilinear")
        positions.append(resized.permute(0, 2, 3, 1).reshape(-1, 3).repeat(1, 1))
    patches = patches + torch.cat(positions)
    pieces = torch.split(patches, grids.prod(-1).tolist())
    for (height, width), piece in zip(grids.tolist(), pieces, strict=False):
        picture = torch.nn.functional.conv2d(piece.t().reshape(1, 3, height, width), FILTERS, stride=2)
        end = torch.ones(1, 5, 1, 1).expand(1, 5, picture.shape[2], 1)
        out.append(torch.cat([picture, end], dim=-1).flatten(2).transpose(1, 2)[0])
    return torch.cat(out)


def attended(x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """Attention within each piece, as models write it out."""
    heads = x[None, :, None, :].transpose(1, 2)
    out = []
    for q, k, v in zip(
        *(torch.split(part, lengths.tolist(), dim=2) for part in (heads, heads * 2, -heads)), strict=False
    ):
        weights = torch.nn.functional.softmax(torch.matmul(q, k.transpose(2, 3)) * 0.5, dim=-1, dtype=torch.float32)
        weights = torch.nn.functional.dropout(weights.to(q.dtype), p=0.0, training=False)
        out.append(torch.matmul(weights, v).transpose(1, 2).contiguous())
    return torch.cat(out, dim=1)


def patches_of(grids: torch.Tensor) -> torch.Tensor:
    return draw(int(grids.prod(-1).sum()), 3)


SAME = ((draw(3, 5, 6),), (draw(4, 7, 6),))
ROWS = tuple((draw(len(lengths), 9, 2), lengths) for lengths in LENGTHS)
LOOPS: dict[Callable[..., Any], tuple[Example, ...]] = {
    **dict.fromkeys((stacked, iterated, written), SAME),
    **dict.fromkeys((cut, cut_by_numbers, cut_at_the_end, padded, averaged, masked, numbered, best_of), ROWS),
    split_and_padded: tuple((draw(int(lengths.sum()), 2), lengths) for lengths in LENGTHS),
    with_a_list_of_defaults: SAME,
    points: ((draw(3, 2, 8, 8),), (draw(4, 2, 8, 8),), (draw(2, 2, 8, 8),)),
    attended: tuple((draw(int(lengths.sum()), 2), lengths) for lengths in LENGTHS),
    in_pieces: tuple((draw(int(lengths.sum()), 2), lengths) for lengths in LENGTHS),
    **dict.fromkeys((merged, merged_by_filters), tuple((patches_of(grids), grids) for grids in GRIDS)),
    with_ends_of_lines: tuple((draw(len(grids), 6, 6), grids) for grids in GRIDS),
    coordinates: tuple((grids,) for grids in GRIDS),
}


@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.__name__)
def test_a_loop_over_items_serves_any_number_of_them(loop: Callable[..., Any]) -> None:
    example, *others = LOOPS[loop]
    captured = modelport.capture(loop, example, dynamic=True)
    for inputs in (example, *others):
        torch.testing.assert_close(captured.run(*inputs), loop(*inputs))


def summed_up(x: torch.Tensor) -> torch.Tensor:
    total, out = torch.zeros_like(x[0]), []
    for row in x:
        total = total + row
        out.append(total)
    return torch.stack(out)


def first_otherwise(x: torch.Tensor) -> torch.Tensor:
    return torch.stack([x[i] * 2 if i == 0 else x[i] for i in range(x.shape[0])])


def with_one_of_a_list(x: torch.Tensor) -> torch.Tensor:
    weights = [1.0, 2.0, 3.0, 4.0]
    return torch.stack([x[i] * weights[i] for i in range(x.shape[0])])


@pytest.mark.parametrize("loop", [summed_up, first_otherwise, with_one_of_a_list], ids=lambda loop: loop.__name__)
def test_a_loop_whose_items_are_not_alike_stays_as_it_is(loop: Callable[..., Any]) -> None:
    captured = modelport.capture(loop, (draw(3, 4),), dynamic=True)
    torch.testing.assert_close(captured.run(draw(3, 4)), loop(draw(3, 4)))
    with pytest.raises(ExportError, match="the program takes 3"):
        captured.run(draw(4, 4))


def test_a_condition_on_items_holds_for_all_of_them_or_is_told_of() -> None:
    def loop(x: torch.Tensor) -> torch.Tensor:
        return torch.stack([row * 2 if row[0] > 0 else row for row in x])

    captured = modelport.capture(loop, (draw(3, 4).abs(),), dynamic=True)
    more = draw(5, 4).abs()
    torch.testing.assert_close(captured.run(more), loop(more))
    with pytest.raises(ExportError):
        captured.run(-more)


def test_what_a_capture_needed_for_items_is_gone_after_it() -> None:
    modelport.capture(cut, ROWS[0], dynamic=True)
    assert torch.tensor([torch.tensor(1), torch.tensor(2)]).tolist() == [1, 2]  # no sequence, as before
    assert "__getitem__" not in vars(torch.Tensor)


# --- tensors of different sizes in one tensor -------------------------------------------------------------------------

SIZES = [(2, 3, 2), (1, 4, 2), (3, 1, 2)]


def packed(scale: float = 1.0) -> tuple[Packed, list[torch.Tensor]]:
    tensors = [draw(*sizes) * scale for sizes in SIZES]
    first, second = (torch.tensor([sizes[axis] for sizes in SIZES]) for axis in (0, 1))
    return Packed(torch.cat([x.flatten(0, 1) for x in tensors]), (first, second, 2), 2, len(SIZES)), tensors


def assert_same(got: Packed, want: list[torch.Tensor]) -> None:
    rows = got.with_lead(len(got.sizes)).data
    torch.testing.assert_close(rows, torch.cat([x.flatten() for x in want]))


@pytest.mark.parametrize("axes", list(itertools.permutations(range(3))), ids=str)
def test_axes_of_ragged_items_are_permuted_as_those_of_each(axes: tuple[int, ...]) -> None:
    items, tensors = packed()
    assert_same(items.permuted(axes), [x.permute(axes) for x in tensors])


@pytest.mark.parametrize("axis", range(3))
def test_ragged_items_are_joined_as_each_with_its_other(axis: int) -> None:
    (left, lefts), (right, rights) = packed(), packed(2.0)
    assert_same(joined_within([left, right], axis), [torch.cat(pair, axis) for pair in zip(lefts, rights, strict=True)])


def test_parts_of_ragged_items_begin_and_end_where_each_says() -> None:
    items, tensors = packed()
    start, length = torch.tensor([1, 2, 0]), torch.tensor([2, 1, 1])
    wanted = [x[:, s : s + n] for x, s, n in zip(tensors, start.tolist(), length.tolist(), strict=True)]
    assert_same(items.part(1, start, length), wanted)
