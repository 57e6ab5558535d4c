"""Tensors that hold images or sounds of different lengths one after the other, for any number of them: what models
compute item by item in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ..symbolic.ragged import begins, places


def changes(x: torch.Tensor) -> torch.Tensor:
    """Whether an element differs from the one before it; the first does."""
    return torch.cat([torch.ones_like(x[:1], dtype=torch.bool), x[1:] != x[:-1]])


def blocks(rank: torch.Tensor, grid: torch.Tensor, merge: Any) -> list[torch.Tensor]:
    """Time, row and column of patches that lie in blocks of merge x merge, by their place in the image."""
    height, width = grid[:, 1], grid[:, 2]
    time, rank = rank // (height * width), rank % (height * width)
    block, inside = rank // (merge * merge), rank % (merge * merge)
    blocks_in_row = width // merge
    row = block // blocks_in_row * merge + inside // merge
    column = block % blocks_in_row * merge + inside % merge
    return [time, row, column]


def audio_windows(original: Callable[..., Any]) -> Callable[..., Any]:
    """For `get_audio_cu_seqlens`: each sound is cut into windows, the last as long as what is left."""

    def get_audio_cu_seqlens(
        chunk_lengths: torch.Tensor,
        feature_lens: torch.Tensor,
        n_window_infer: int,
        n_window: int,
        kwargs: dict[str, Any] | None = None,
    ) -> torch.Tensor:
        if kwargs is not None and kwargs.get("cu_seqlens") is not None:
            return original(chunk_lengths, feature_lens, n_window_infer, n_window, kwargs)
        after_convolution = original.__globals__["_get_feat_extract_output_lengths"]
        lengths = after_convolution(feature_lens, n_window)
        window = after_convolution(chunk_lengths, n_window).max() * (n_window_infer // (n_window * 2))
        sound, number = places((lengths + window - 1) // window)
        sizes = torch.minimum(window, lengths[sound] - number * window)
        return torch.nn.functional.pad(sizes.cumsum(0), (1, 0)).to(torch.int32)

    return get_audio_cu_seqlens


def merged_projection(_original: Any) -> Callable[..., Any]:
    """For the forward of a projector that normalises patches, joins those of a block and maps each block."""

    def forward(self: Any, image_features: torch.Tensor, image_grid_thw: torch.Tensor) -> torch.Tensor:
        merge, _ = self.merge_kernel_size
        image_features = self.pre_norm(image_features)
        lengths = image_grid_thw.prod(-1)
        image, rank = places(lengths)
        grid = image_grid_thw[image]
        time, row, column = blocks(rank, grid, merge)
        source = begins(lengths)[image] + (time * grid[:, 1] + row) * grid[:, 2] + column
        joined = image_features[source].reshape(-1, merge * merge * image_features.shape[-1])
        return self.linear_2(self.act(self.linear_1(joined)))

    return forward


def unshuffled(_original: Any) -> Callable[..., Any]:
    """For `pixel_unshuffle`: the middle of each block of patches, between patches if the block has no middle one."""

    def pixel_unshuffle(
        self: Any, hidden_states: torch.Tensor, grid_thw: torch.Tensor, merge_sizes: torch.Tensor
    ) -> torch.Tensor:
        lengths = grid_thw.prod(-1)
        area = merge_sizes * merge_sizes
        image, block = places(lengths // area)
        merge = merge_sizes[image]
        begin = begins(lengths)[image] + block * area[image]
        low, high = (merge - 1) // 2, merge // 2
        corners = [begin + row * merge + column for row in (low, high) for column in (low, high)]
        return sum(hidden_states[corner] for corner in corners) / 4

    return pixel_unshuffle


def time_slices(_original: Any) -> Callable[..., Any]:
    """For `_temporal_slicing`: even frames beside odd ones; the one frame of an image beside itself."""

    def _temporal_slicing(self: Any, hidden_states: torch.Tensor, grid_thw: torch.Tensor) -> torch.Tensor:
        frames = grid_thw[:, 0]
        spatial = grid_thw[:, 1:].prod(-1) // self.spatial_merge_size**2
        image, rank = places((frames // 2).clamp(min=1) * spatial)
        size = spatial[image]
        begin = begins(frames * spatial)[image] + rank % size
        even = 2 * (rank // size)
        odd = torch.where(frames[image] > 1, even + 1, 0)
        return torch.concat([hidden_states[begin + even * size], hidden_states[begin + odd * size]], dim=-1)

    return _temporal_slicing


def packed_patches(original: Callable[..., Any]) -> Callable[..., Any]:
    """For the inside of a vision model that cuts each image to its size and attends within images."""

    def forward(self: Any, pixel_values: torch.Tensor, image_sizes: Any = None, **kwargs: Any) -> Any:
        patches = self.patch_conv(pixel_values.to(self.patch_conv.weight.dtype))
        if image_sizes is None:
            inside = torch.ones_like(patches[:, 0], dtype=torch.bool)
        else:
            counts = torch.as_tensor(image_sizes, device=patches.device) // self.patch_size
            rows = torch.arange(patches.shape[2], device=patches.device)[None, :, None]
            columns = torch.arange(patches.shape[3], device=patches.device)
            inside = (rows < counts[:, 0, None, None]) & (columns < counts[:, 1, None, None])
        image, row, column = inside.nonzero(as_tuple=True)
        packed = self.ln_pre(patches.permute(0, 2, 3, 1)[image, row, column].unsqueeze(0))
        positions = self.patch_positional_embedding(packed, torch.stack([row, column], dim=-1))
        same_image = image[:, None] == image[None, :]
        mask = torch.zeros_like(same_image, dtype=packed.dtype)
        mask = mask.masked_fill(~same_image, torch.finfo(packed.dtype).min)[None, None]
        return self.transformer(packed, attention_mask=mask, position_embeddings=positions, **kwargs)

    return forward


def merged_patches(_original: Any) -> Callable[..., Any]:
    """For the forward of a merger that maps blocks of patches, the patches of a channel side by side."""

    def forward(self: Any, image_features: torch.Tensor, image_sizes: Any) -> torch.Tensor:
        merge, channels = self.spatial_merge_size, image_features.shape[-1]
        counts = torch.as_tensor(image_sizes, device=image_features.device) // self.patch_size
        whole = counts // merge * merge  # rows and columns that do not fill a block are left out
        image, rank = places(whole.prod(-1))
        grid = torch.cat([torch.ones_like(whole[:, :1]), whole], dim=1)
        _, row, column = blocks(rank, grid[image], merge)
        source = begins(counts.prod(-1))[image] + row * counts[image, 1] + column
        blocked = image_features[source].reshape(-1, merge * merge, channels)
        return self.merging_layer(blocked.transpose(1, 2).reshape(-1, channels * merge * merge))

    return forward
