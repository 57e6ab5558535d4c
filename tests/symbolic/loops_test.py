"""Python that pins sizes when taken literally: conversions of sizes, loops over items and over time."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np
import pytest
import torch

import modelport
from modelport.patches import scans, vision_positions
from modelport.symbolic import progressions, ragged


def captured(function: Any, *tensors: torch.Tensor) -> modelport.Captured:
    return modelport.capture(function, tensors, dynamic=True)


def assert_same(graph: modelport.Captured, function: Any, *tensors: torch.Tensor) -> None:
    with torch.no_grad():
        torch.testing.assert_close(graph.run(*tensors), function(*tensors))


def test_int_and_len_of_a_size_leave_it_symbolic_and_are_the_builtins_again_afterwards() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        half = int(x.shape[1] / 2)
        assert isinstance(3, int)
        return x[:, :half].reshape(len(x) * half)

    graph = captured(function, torch.randn(3, 8))
    assert_same(graph, function, torch.randn(5, 11))
    assert int is builtins.int and "int" not in globals() and "len" not in globals()


def test_min_of_a_size_is_an_expression() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return x.topk(min(4, x.shape[0]), dim=0).values

    graph = captured(function, torch.randn(9, 2))
    assert_same(graph, function, torch.randn(3, 2))
    assert_same(graph, function, torch.randn(20, 2))


def test_an_array_of_zeros_for_a_size_is_a_tensor_and_numpy_is_numpy_again_afterwards() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        rows = [np.zeros((x.shape[0] // 2, 3), dtype=np.int64) for _ in range(2)]
        return x[torch.tensor(np.stack(rows, axis=0))]

    graph = captured(function, torch.randn(6, 2))
    assert_same(graph, function, torch.randn(11, 2))
    assert np.zeros(2).shape == (2,) and type(np).__name__ == "module"


@pytest.mark.parametrize("example", [8, 9])
def test_a_model_that_pads_to_whole_blocks_where_it_must_is_one_graph_for_every_length(example: int) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        padding = (4 - x.shape[1] % 4) % 4
        if padding > 0:
            x = torch.nn.functional.pad(x, (0, padding))
        summed = x.unflatten(1, (-1, 4)).cumsum(1).flatten(1)
        return summed[:, :-padding] if padding > 0 else summed

    graph = captured(function, torch.randn(3, example))
    for length in (4, 5, 7, 16, 18):
        assert_same(graph, function, torch.randn(2, length))


def test_a_condition_whose_sides_compute_something_else_is_kept() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return x + 1 if x.shape[0] % 2 == 0 else x - 1

    graph = captured(function, torch.randn(4))
    assert_same(graph, function, torch.randn(6))
    with pytest.raises(modelport.ExportError, match="E0304"):
        graph.run(torch.randn(5))


def test_a_list_of_positions_stays_open_while_only_its_ends_and_its_length_matter() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        places = list(range(x.shape[0]))
        pooled = [-1] + places[1:-1][::2]  # noqa: RUF005  (as a model writes it)
        distances = torch.arange(2 * len(pooled), pooled[0] - places[-1] - 1, -1)
        return x.sum() + distances * pooled[-1] + pooled[1]

    graph = captured(function, torch.randn(9))
    for length in (6, 7, 12):
        assert_same(graph, function, torch.randn(length))


@pytest.mark.parametrize("first", [[], [7], [7, 8, 9]])
@pytest.mark.parametrize("part", [slice(1, None), slice(1, -1), slice(None, None, 2), slice(2, -2, 3), slice(0, 2)])
def test_parts_of_a_progression_are_those_of_the_list(first: list[int], part: slice) -> None:
    for count in range(1, 6):
        numbers = progressions.Progression(tuple(first), 10, 2, count, lambda _name: None)
        plain = [*first, *range(10, 10 + 2 * count, 2)]
        assert list(numbers[part]) == plain[part]
        assert [numbers[-1], numbers[0], len(numbers)] == [plain[-1], plain[0], len(plain)]


def test_as_many_classes_as_a_size_has_stay_open() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.one_hot(torch.arange(3), x.shape[0] + 3) * x.sum()

    graph = captured(function, torch.randn(4))
    assert_same(graph, function, torch.randn(7))


def test_a_range_over_blocks_pins_the_number_of_blocks_and_not_the_size() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.cat([x[start : start + 16] * start for start in range(0, x.shape[0], 16)])

    graph = captured(function, torch.randn(20, 2))
    assert_same(graph, function, torch.randn(29, 2))
    with pytest.raises(modelport.ExportError, match="E0304"):
        graph.run(torch.randn(40, 2))


def test_rows_that_only_come_together_again_stay_one_tensor() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.cat(list(x), dim=0)

    assert_same(captured(function, torch.randn(3, 4, 2)), function, torch.randn(5, 4, 2))


def split_and_attend(x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    pieces = torch.split(x, lengths.tolist(), dim=2)
    attend = torch.nn.functional.scaled_dot_product_attention
    return torch.cat([attend(piece, piece, piece) for piece in pieces], dim=2)


def test_attention_within_pieces_of_any_number_is_one_attention_with_a_mask() -> None:
    graph = captured(split_and_attend, torch.randn(1, 2, 9, 4), torch.tensor([2, 4, 3]))
    assert_same(graph, split_and_attend, torch.randn(1, 2, 12, 4), torch.tensor([5, 1, 4, 2]))


def test_a_loop_whose_pieces_matter_otherwise_serves_any_number_of_them_too() -> None:
    def function(x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        return torch.cat([piece - piece.mean(0) for piece in torch.split(x, lengths.tolist())])

    graph = captured(function, torch.randn(9, 4), torch.tensor([2, 4, 3]))
    assert_same(graph, function, torch.randn(11, 4), torch.tensor([5, 2, 4]))
    assert_same(graph, function, torch.randn(9, 4), torch.tensor([4, 5]))


def test_a_bound_that_holds_for_a_while_is_not_dropped_after_one_try() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return x + 1 if x.shape[0] < 12 else x + 2

    graph = captured(function, torch.randn(5))
    assert_same(graph, function, torch.randn(11))
    with pytest.raises(modelport.ExportError, match="E0304"):
        graph.run(torch.randn(12))


def test_the_graph_of_another_size_keeps_the_bounds_that_were_found_before() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        windows = x.shape[0] // 4
        if windows == 0:
            return x.sum() * 2
        y = x[: windows * 4].reshape(windows, 4).clone()
        if windows > 1:
            y[1:] += y[:-1].clone()
        return y.sum()

    graph = captured(function, torch.randn(6))
    assert_same(graph, function, torch.randn(6))
    assert_same(graph, function, torch.randn(21))
    with pytest.raises(modelport.ExportError, match="E0304"):
        graph.run(torch.randn(3))


@pytest.mark.parametrize("length", [1, 2, 7, 8, 100])
def test_a_scan_in_doubling_steps_is_the_recurrence(length: int) -> None:
    gate, x = torch.rand(2, length, 3), torch.randn(2, length, 3)

    def follow(left: Any, right: Any) -> Any:
        return left[0] * right[0], right[0] * left[1] + right[1]

    def scan(gate: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return scans._in_doubling_steps(follow, (gate, x), 1)[1]

    def by_operator(gate: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return scans.associative_scan(torch.sum)(follow, (gate, x), 1)[1]

    state, states = torch.zeros(2, 3), []
    for t in range(length):
        state = gate[:, t] * state + x[:, t]
        states.append(state)
    want = torch.stack(states, 1)
    for way in (scan, by_operator):
        torch.testing.assert_close(way(gate, x), want)
        graph = captured(way, torch.rand(2, 5, 3), torch.randn(2, 5, 3))
        torch.testing.assert_close(graph.run(gate, x), want)
    assert len(graph.program.nodes()) == 1


def test_a_scan_of_another_kind_is_no_linear_recurrence() -> None:
    def largest(left: Any, right: Any) -> Any:
        return left[0] + right[0], torch.maximum(left[1] + right[0], right[1])

    x, y = torch.rand(2, 9, 3), torch.rand(2, 9, 3)
    graph = captured(lambda x, y: scans.associative_scan(torch.sum)(largest, (x, y), 1)[1], x, y)
    want = torch.ops.modelport.maximum_recurrence(x, y, None, 1)
    torch.testing.assert_close(graph.run(x, y), want)


GRIDS = [torch.tensor([[1, 4, 6], [3, 8, 4], [1, 2, 2]]), torch.tensor([[2, 10, 12]])]


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("with_time", [False, True])
def test_positions_of_patches_are_those_of_transformers(grid: torch.Tensor, with_time: bool) -> None:
    from transformers import vision_utils

    ours = vision_positions.vision_position_ids(vision_utils.get_vision_position_ids)
    want = vision_utils.get_vision_position_ids(grid, 2, with_time)
    assert torch.equal(ours(grid, 2, with_time), want)


@pytest.mark.parametrize("grid", GRIDS)
def test_windows_of_patches_are_those_of_transformers(grid: torch.Tensor) -> None:
    from transformers import vision_utils

    ours = vision_positions.window_index(vision_utils.get_vision_window_index)
    for got, want in zip(ours(grid, 2, 8, 2), vision_utils.get_vision_window_index(grid, 2, 8, 2), strict=True):
        assert torch.equal(got, want)


def test_positions_resized_for_each_image_are_those_of_transformers() -> None:
    from transformers.models.siglip2.modeling_siglip2 import Siglip2VisionEmbeddings

    original = Siglip2VisionEmbeddings.resize_positional_embeddings
    shapes = torch.tensor([[1, 7], [5, 3], [16, 2], [4, 4], [9, 11]])
    table = torch.randn(6, 6, 8)
    ours = vision_positions.resized_positions(original).__func__
    torch.testing.assert_close(ours(table, shapes, 100), original(table, shapes, 100))


def test_places_of_items_that_lie_one_after_the_other() -> None:
    item, place = ragged.places(torch.tensor([2, 0, 3]))
    assert item.tolist() == [0, 0, 2, 2, 2]
    assert place.tolist() == [0, 1, 0, 1, 2]


ROPE_MODELS = [("qwen2_vl", "Qwen2VLModel"), ("qwen3_vl_moe", "Qwen3VLMoeModel"), ("qwen2_5_vl", "Qwen2_5_VLModel")]


@pytest.mark.parametrize(("family", "name"), ROPE_MODELS)
def test_positions_of_text_images_and_videos_are_those_of_transformers(family: str, name: str) -> None:
    import importlib
    from types import SimpleNamespace

    cls = getattr(importlib.import_module(f"transformers.models.{family}.modeling_{family}"), name)
    vision = SimpleNamespace(spatial_merge_size=2, tokens_per_second=3) if family == "qwen2_5_vl" else None
    vision = vision or SimpleNamespace(spatial_merge_size=2)
    model = SimpleNamespace(config=SimpleNamespace(vision_config=vision))
    model.get_vision_position_ids = lambda *args, **kwargs: cls.get_vision_position_ids(model, *args, **kwargs)
    text, image, video = [0, 0, 0], [1] * 6, [2] * 2
    frames = [*video, 0, *video] if family == "qwen3_vl_moe" else [*video, *video]
    first = [*text, *image, 0, *frames]
    second = [*image, 0, *text]
    padding = [0] * (len(first) - len(second))
    kinds = torch.tensor([first, padding + second])
    mask = torch.tensor([[1] * len(first), [0] * len(padding) + [1] * len(second)])
    images, videos = torch.tensor([[1, 4, 6], [1, 6, 4]]), torch.tensor([[2, 2, 4]])
    inputs = {"image_grid_thw": images, "video_grid_thw": videos, "attention_mask": mask}
    want = cls.get_rope_index(model, kinds, kinds, **inputs)
    got = vision_positions.rope_index(cls.get_rope_index)(model, kinds, kinds, **inputs)
    for g, w in zip(got, want, strict=True):
        assert torch.equal(g, w)


def test_positions_in_lines_of_images_are_those_of_transformers() -> None:
    from types import SimpleNamespace

    from transformers.models.hunyuan_vl.modeling_hunyuan_vl import HunYuanVLModel

    text = SimpleNamespace(rope_parameters={"mrope_section": [2, 2, 2, 2]})
    model = SimpleNamespace(
        config=SimpleNamespace(vision_config=SimpleNamespace(spatial_merge_size=2), text_config=text),
        get_vision_position_ids=lambda *args, **kwargs: HunYuanVLModel.get_vision_position_ids(None, *args, **kwargs),
    )
    bare, marked = [1] * 2 * 4, [1] * (3 * 3 + 2)  # grids of 2 x 3 and of 3 x 2, with an end for each line
    first, second = [0, 0, *bare, 0, *marked, 0], [0, *marked, 0, 0]
    padding = [0] * (len(first) - len(second))
    kinds = torch.tensor([first, padding + second])
    mask = torch.tensor([[1] * len(first), [0] * len(padding) + [1] * len(second)])
    grids = torch.tensor([[1, 4, 6], [1, 6, 4], [1, 6, 4]])
    want = HunYuanVLModel.get_rope_index(model, kinds, kinds, grids, mask)
    got = vision_positions.rope_index_of_images(HunYuanVLModel.get_rope_index)(model, kinds, kinds, grids, mask)
    for g, w in zip(got, want, strict=True):
        assert torch.equal(g, w)


OMNI = [  # with the frames of a sound that has two tokens
    ("qwen2_5_omni", "Qwen2_5OmniPreTrainedModelForConditionalGeneration", 8),
    ("qwen3_omni_moe", "Qwen3OmniMoePreTrainedModelForConditionalGeneration", 16),
]


@pytest.mark.parametrize(("family", "name", "frames"), OMNI)
def test_positions_beside_sounds_are_those_of_transformers(family: str, name: str, frames: int) -> None:
    import importlib
    from types import SimpleNamespace

    cls = getattr(importlib.import_module(f"transformers.models.{family}.modeling_{family}"), name)
    tokens = {"image": 1, "video": 2, "audio": 3, "vision_start": 4, "audio_start": 5}
    model = SimpleNamespace(
        spatial_merge_size=2,
        config=SimpleNamespace(
            vision_config=SimpleNamespace(spatial_merge_size=2),
            audio_config=SimpleNamespace(n_window=50),
            position_id_per_seconds=5,
            seconds_per_chunk=2,
            **{f"{token}_token_id": number for token, number in tokens.items()},
        ),
    )
    model.get_llm_pos_ids_for_vision = lambda *args: cls.get_llm_pos_ids_for_vision(model, *args)
    sound = [5, *[3] * 2, 8]
    first = [9, 4, *[1] * 6, 7, 9, *sound, 4, *[2] * 4, 7, 9, 9]
    second = [9, 9, 4, *[1] * 6, 7, 9]
    padding = [0] * (len(first) - len(second))
    ids = torch.tensor([first, [*padding, *second]])
    mask = torch.tensor([[1] * len(first), [0] * len(padding) + [1] * len(second)])
    call = {
        "image_grid_thw": torch.tensor([[1, 4, 6], [1, 6, 4]]),
        "video_grid_thw": torch.tensor([[2, 2, 4]]),
        "attention_mask": mask,
        "audio_seqlens": torch.tensor([frames]),
        "second_per_grids": torch.tensor([1.5]),
    }
    want = cls.get_rope_index(model, ids, **call)
    got = vision_positions.rope_index_by_tokens(cls.get_rope_index)(model, ids, **call)
    for g, w in zip(got, want, strict=True):
        assert torch.equal(g, w)


def begins_of_runs(valid: torch.Tensor) -> torch.Tensor:
    """For each row that is set, where the rows of its kind begin."""
    row = valid.nonzero(as_tuple=True)[0]
    starts = torch.cat([torch.ones_like(row[:1], dtype=torch.bool), row[1:] != row[:-1]])
    return starts.nonzero()[:, 0][starts.cumsum(0) - 1]


def test_what_is_looked_up_at_the_places_that_are_set_keeps_their_number_open() -> None:
    valid = torch.tensor([[True, True, False], [False, False, True]])
    larger = torch.tensor([[True, True, False], [False, True, True], [True, True, True]])
    assert_same(captured(begins_of_runs, valid), begins_of_runs, larger)
