"""Positions of image and video tokens, for any number of images: what transformers computes image by image."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ..symbolic.ragged import begins, places
from .packed_items import blocks, changes


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
        image, rank = places(grid_thw.prod(-1))
        merge = spatial_merge_size if isinstance(spatial_merge_size, int) else spatial_merge_size[image]
        return torch.stack(blocks(rank, grid_thw[image], merge)[0 if include_temporal else 1 :], dim=-1)

    return get_vision_position_ids


def window_index(original: Callable[..., Any]) -> Callable[..., Any]:
    """For `get_vision_window_index`: merged patches sorted by the window that they lie in."""

    def get_vision_window_index(
        grid_thw: torch.Tensor,
        spatial_merge_size: int,
        window_size: int,
        patch_size: int,
        kwargs: dict[str, Any] | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if kwargs is not None and kwargs.get("window_index") is not None:
            return original(grid_thw, spatial_merge_size, window_size, patch_size, kwargs)
        side = window_size // spatial_merge_size // patch_size
        grid = torch.cat([grid_thw[:, :1], grid_thw[:, 1:] // spatial_merge_size], dim=1)
        image, rank = places(grid.prod(-1))
        time, row, column = blocks(rank, grid[image], 1)
        windows = grid[:, 1:] // side + 1  # along each side
        frame = windows.prod(-1)
        window = begins(grid[:, 0] * frame)[image] + time * frame[image]
        window = window + row // side * windows[image, 1] + column // side
        window, index = torch.sort(window, stable=True)
        starts = changes(window).nonzero()[:, 0]
        bounds = torch.cat([starts, torch.full_like(starts[:1], window.shape[0])])
        return index, (bounds * spatial_merge_size**2).to(torch.int32)

    return get_vision_window_index


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
        rate = getattr(self.config.vision_config, "tokens_per_second", None)
        interval = None if rate is None else _interval(sample, kind, rate, second_per_grid_ts, 1)
        rows = torch.zeros((3, *valid.shape), dtype=input_ids.dtype, device=valid.device)
        return _in_rows(_positions(sample, kind, grids, interval), (sample, column), valid, rows)

    frames_apart = "repeat_interleave" in original.__code__.co_names
    return get_rope_index


def rope_index_by_tokens(original: Callable[..., Any]) -> Callable[..., Any]:
    """For `get_rope_index` of models that hear as well: the tokens themselves say what belongs to images and videos,
    sounds count as text does, and what follows goes on after the largest position, time included."""

    def get_rope_index(
        self: Any,
        input_ids: torch.Tensor | None = None,
        image_grid_thw: torch.Tensor | None = None,
        video_grid_thw: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        use_audio_in_video: bool = False,
        audio_seqlens: torch.Tensor | None = None,
        second_per_grids: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        of_text = image_grid_thw is None and video_grid_thw is None
        if input_ids is None or attention_mask is None or use_audio_in_video or of_text:
            return original(
                self,
                input_ids,
                image_grid_thw,
                video_grid_thw,
                attention_mask,
                use_audio_in_video,
                audio_seqlens,
                second_per_grids,
            )
        valid = attention_mask == 1
        sample, column = valid.nonzero(as_tuple=True)
        token, config = input_ids[sample, column], self.config
        kind = torch.zeros_like(token)
        if image_grid_thw is not None:
            kind = torch.where(token == config.image_token_id, 1, kind)
        if video_grid_thw is not None:
            kind = torch.where(token == config.video_token_id, 2, kind)
        grids = _grids(self, kind, _starts(sample, kind), image_grid_thw, video_grid_thw)
        rate = config.position_id_per_seconds
        interval = _interval(sample, kind, rate, second_per_grids, of_images=rate)
        positions = _positions(sample, kind, grids, interval, time_counts=True, whole=whole)
        dtype = input_ids.dtype if whole else torch.float
        rows = torch.full((3, *valid.shape), outside, dtype=dtype, device=valid.device)
        return _in_rows(positions, (sample, column), valid, rows)

    names = original.__code__.co_names
    whole, outside = "long" in names, int("ones" in names)
    return get_rope_index


def rope_index_of_images(_original: Callable[..., Any]) -> Callable[..., Any]:
    """For `get_rope_index` where text and images count on alike, and tokens of an image have its columns, with one more
    for the end of each row, its rows, and its number in the last three axes."""

    def get_rope_index(
        self: Any,
        input_ids: torch.Tensor,
        mm_token_type_ids: torch.Tensor,
        image_grid_thw: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        **_kwargs: Any,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        axes = len(self.config.text_config.rope_parameters["mrope_section"])
        valid = (torch.ones_like(input_ids) if attention_mask is None else attention_mask).bool()
        sample, column = valid.nonzero(as_tuple=True)
        positions = (valid.cumsum(1) - 1)[sample, column].expand(axes, -1)
        if image_grid_thw is not None:
            own = _places_in_images(self, sample, mm_token_type_ids[sample, column], image_grid_thw)
            positions = torch.cat([positions[: axes - 3], torch.where(own[0] >= 0, own, positions[axes - 3 :])])
        rows = torch.zeros((axes, *valid.shape), dtype=input_ids.dtype, device=valid.device)
        return _in_rows(positions, (sample, column), valid, rows)

    return get_rope_index


def _places_in_images(model: Any, sample: torch.Tensor, kind: torch.Tensor, grids: torch.Tensor) -> torch.Tensor:
    """Column, row and image of each token, -1 for one that is in none: between marks, which images may have."""
    starts = _starts(sample, kind)
    group = starts.cumsum(0) - 1
    length = torch.zeros_like(group).index_add(0, group, torch.ones_like(group))[group]
    image = _number(starts & (kind == 1))
    height, width = (grids[:, 1:] // model.config.vision_config.spatial_merge_size)[image].unbind(-1)
    width = width + 1
    rank = torch.arange(sample.shape[0], device=sample.device) - _begins(starts)
    rank = torch.where(length == height * width + 2, rank - 1, rank)
    inside = (kind == 1) & (rank >= 0) & (rank < height * width)
    return torch.where(inside, torch.stack([rank % width, rank // width, image]), -1)


def _in_rows(
    positions: torch.Tensor, at: tuple[torch.Tensor, torch.Tensor], valid: torch.Tensor, rows: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """The positions of tokens that count in the rows of a batch, and how far each goes beyond its number of tokens."""
    rows[:, at[0], at[1]] = positions.to(rows.dtype)
    last = rows.masked_fill(~valid, -1).amax(dim=(0, 2))
    return rows, (last + 1 - valid.sum(1)).unsqueeze(1)


def _starts(sample: torch.Tensor, kind: torch.Tensor) -> torch.Tensor:
    """Where a group begins: tokens of one sample and one kind that follow each other."""
    return changes(sample) | changes(kind)


def _begins(starts: torch.Tensor) -> torch.Tensor:
    """For each token where what it belongs to begins."""
    return starts.nonzero()[:, 0][starts.cumsum(0) - 1]


def _number(starts: torch.Tensor) -> torch.Tensor:
    """For each token how many began up to it, counted from 0."""
    return (starts.cumsum(0) - 1).clamp(min=0)


def _grids(model: Any, kind: torch.Tensor, starts: torch.Tensor, images: Any, videos: Any) -> torch.Tensor:
    """For each token the grid of its image or video, after merging; text has a grid of one."""
    vision = model.config.vision_config
    merged = torch.ones((kind.shape[0], 3), dtype=torch.int64, device=kind.device)
    for number, grid in ((1, images), (2, videos)):
        if grid is None:
            continue
        which = _number(starts & (kind == number))
        time = getattr(vision, "temporal_merge_size", 1) if number == 2 else 1
        merge = torch.tensor([time, vision.spatial_merge_size, vision.spatial_merge_size], device=kind.device)
        merged = torch.where((kind == number)[:, None], (grid // merge)[which], merged)
    return merged


def _interval(
    sample: torch.Tensor, kind: torch.Tensor, rate: float, seconds: torch.Tensor | None, of_images: float
) -> torch.Tensor:
    """For each token how far frames lie apart."""
    which = _number(_starts(sample, kind) & (kind == 2))
    return torch.where(kind == 2, rate * (1 if seconds is None else seconds[which]), of_images)


def _positions(
    sample: torch.Tensor,
    kind: torch.Tensor,
    grids: torch.Tensor,
    interval: torch.Tensor | None,
    *,
    time_counts: bool = False,
    whole: bool = True,
) -> torch.Tensor:
    """Time, row and column of each token, counted on from what comes before; `whole` numbers of time, and what follows
    is behind the last frame as well where `time_counts`."""

    def seen_at(frame: torch.Tensor) -> torch.Tensor:
        if interval is None:
            return frame
        return (frame * interval).long() if whole else frame * interval

    starts = _starts(sample, kind)
    here = torch.arange(sample.shape[0], device=sample.device)
    begin, first = _begins(starts), _begins(changes(sample))  # of the token's group, and of its sample
    rank = here - begin
    is_text = kind == 0
    extent = grids[:, 1:].amax(1)
    if time_counts:
        extent = torch.maximum(extent, seen_at(grids[:, 0] - 1) + 1)
    advance = torch.where(is_text, 1, torch.where(starts, extent, 0))
    before = advance.cumsum(0) - advance
    base = before[begin] - before[first]
    height, width = grids[:, 1], grids[:, 2]
    place = torch.stack([seen_at(rank // (height * width)), rank // width % height, rank % width])
    return base + torch.where(is_text, rank, place)


def resized_positions(_original: Callable[..., Any]) -> Any:
    """For `resize_positional_embeddings`: a table of positions, resized for each image as bilinear interpolation with
    antialiasing does; what is behind an image's last patch gets the position of its first."""

    def resize(table: torch.Tensor, spatial_shapes: torch.Tensor, max_length: Any) -> torch.Tensor:
        rows, columns = spatial_shapes[:, :1], spatial_shapes[:, 1:]
        patch = torch.arange(max_length, device=table.device)
        patch = torch.where(patch < rows * columns, patch, 0)
        down = _triangles(patch // columns, rows, table.shape[0])
        across = _triangles(patch % columns, columns, table.shape[1])
        shares = (down.unsqueeze(-1) * across.unsqueeze(-2)).flatten(-2)
        return (shares @ table.flatten(0, 1).to(shares.dtype)).to(table.dtype)

    return staticmethod(resize)


def _triangles(place: torch.Tensor, size: torch.Tensor, source: int) -> torch.Tensor:
    """How much each of `source` elements counts for a place among `size`: [images, places, source]."""
    scale = source / size.to(torch.float32)
    center = (place.to(torch.float32) + 0.5) * scale
    distance = torch.arange(source, device=place.device) + 0.5 - center.unsqueeze(-1)
    share = (1 - distance.abs() / scale.clamp(min=1).unsqueeze(-1)).clamp(min=0)
    return share / share.sum(-1, keepdim=True)
