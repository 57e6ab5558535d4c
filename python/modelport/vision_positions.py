"""Positions of image and video tokens, for any number of images: what transformers computes image by image in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def vision_position_ids(original: Callable[..., Any]) -> Callable[..., Any]:
    """For `get_vision_position_ids`: rows and columns of all patches, in blocks of merged patches."""

    def get_vision_position_ids(
        grid_thw: torch.Tensor,
        spatial_merge_size: Any,
        include_temporal: bool = False,
        kwargs: dict[str, Any] | None = None,
    ) -> torch.Tensor:
        if kwargs is not None and kwargs.get("position_ids") is not None:
            return original(grid_thw, spatial_merge_size, include_temporal, kwargs)
        image, rank = _token_places(grid_thw.prod(-1))
        grid = grid_thw[image]
        merge = spatial_merge_size if isinstance(spatial_merge_size, int) else spatial_merge_size[image]
        return _blocks(rank, grid, merge, include_temporal)

    return get_vision_position_ids


def _token_places(lengths: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """For tokens that lie one image after the other: the image of each, and its place in the image."""
    images = torch.arange(lengths.shape[0], device=lengths.device)
    image = torch.repeat_interleave(images, lengths)
    starts = lengths.cumsum(0) - lengths
    return image, torch.arange(image.shape[0], device=lengths.device) - starts[image]


def _blocks(rank: torch.Tensor, grid: torch.Tensor, merge: Any, include_temporal: bool) -> torch.Tensor:
    height, width = grid[:, 1], grid[:, 2]
    time, rank = rank // (height * width), rank % (height * width)
    block, inside = rank // (merge * merge), rank % (merge * merge)
    blocks_in_row = width // merge
    row = block // blocks_in_row * merge + inside // merge
    column = block % blocks_in_row * merge + inside % merge
    return torch.stack([time, row, column] if include_temporal else [row, column], dim=-1)


def rope_index(original: Callable[..., Any]) -> Callable[..., Any]:
    """For `get_rope_index`: text counts on, an image or video counts time, rows and columns from where it begins, and
    what follows goes on after its longer side."""

    def get_rope_index(
        self: Any,
        input_ids: torch.Tensor,
        mm_token_type_ids: torch.Tensor,
        image_grid_thw: torch.Tensor | None = None,
        video_grid_thw: torch.Tensor | None = None,
        second_per_grid_ts: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        **_kwargs: Any,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        valid = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        valid = valid.bool()
        sample, column = valid.nonzero(as_tuple=True)  # the tokens that count, in order
        kind = mm_token_type_ids[sample, column]
        if video_grid_thw is not None and frames_apart:  # each frame of a video is a group of its own
            frames = torch.repeat_interleave(video_grid_thw, video_grid_thw[:, 0], dim=0)
            video_grid_thw = torch.cat([torch.ones_like(frames[:, :1]), frames[:, 1:]], dim=1)
        grids = _grids(self, kind, _starts(sample, kind), image_grid_thw, video_grid_thw)
        positions = _positions(self, sample, kind, grids, second_per_grid_ts)
        position_ids = torch.zeros((3, *input_ids.shape), dtype=input_ids.dtype, device=input_ids.device)
        position_ids[:, sample, column] = positions.to(input_ids.dtype)
        last = position_ids.masked_fill(~valid, -1).amax(dim=(0, 2))
        return position_ids, (last + 1 - valid.sum(1)).unsqueeze(1)

    frames_apart = "repeat_interleave" in original.__code__.co_names
    return get_rope_index


def _starts(sample: torch.Tensor, kind: torch.Tensor) -> torch.Tensor:
    """Where a group begins: tokens of one sample and one kind that follow each other."""
    return _changes(sample) | _changes(kind)


def _changes(x: torch.Tensor) -> torch.Tensor:
    return torch.cat([torch.ones_like(x[:1], dtype=torch.bool), x[1:] != x[:-1]])


def _grids(model: Any, kind: torch.Tensor, starts: torch.Tensor, images: Any, videos: Any) -> torch.Tensor:
    """For each token the grid of its image or video, after merging; text has a grid of one."""
    vision = model.config.vision_config
    merged = torch.ones((kind.shape[0], 3), dtype=torch.int64, device=kind.device)
    for number, grid in ((1, images), (2, videos)):
        if grid is None:
            continue
        which = ((starts & (kind == number)).cumsum(0) - 1).clamp(min=0)
        time = getattr(vision, "temporal_merge_size", 1) if number == 2 else 1
        merge = torch.tensor([time, vision.spatial_merge_size, vision.spatial_merge_size], device=kind.device)
        merged = torch.where((kind == number)[:, None], (grid // merge)[which], merged)
    return merged


def _positions(
    model: Any, sample: torch.Tensor, kind: torch.Tensor, grids: torch.Tensor, seconds: torch.Tensor | None
) -> torch.Tensor:
    starts = _starts(sample, kind)
    here = torch.arange(sample.shape[0], device=sample.device)
    begin = starts.nonzero()[:, 0][starts.cumsum(0) - 1]  # of the token's group
    first = _changes(sample).nonzero()[:, 0][_changes(sample).cumsum(0) - 1]  # of the token's sample
    rank = here - begin
    is_text = kind == 0
    advance = torch.where(is_text, 1, torch.where(starts, grids[:, 1:].amax(1), 0))
    before = advance.cumsum(0) - advance
    base = before[begin] - before[first]
    height, width = grids[:, 1], grids[:, 2]
    time = rank // (height * width)
    rate = getattr(model.config.vision_config, "tokens_per_second", None)
    if rate is not None:
        which = ((starts & (kind == 2)).cumsum(0) - 1).clamp(min=0)
        interval = rate * (1 if seconds is None else seconds[which])
        time = torch.where(kind == 2, (time * interval).long(), time)
    place = torch.stack([time, rank // width % height, rank % width])
    return base + torch.where(is_text, rank, place)
