"""Inputs that are seen: images, clips, patches with their grids, points on an image, regions of it."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from .making import Making, Options, Subject

_STEP = 32  # at least so many pixels lie between two sizes, so that most strides divide both
_ROOMY = 384  # where a model takes any size, an example has no need of a larger one
_FRAMES = ("num_frames", "frames_per_clip", "video_length")


class View(NamedTuple):
    """How images are laid out, and the one size that they must have, if there is one."""

    layout: str  # "plain": [batch, c, h, w]; "listed": [batch, images, c, h, w]; "clip": [batch, frames, c, h, w]
    fixed: tuple[int, int] | None = None
    images: int = 1  # of a list


def options(subject: Subject) -> Options:
    names, facts = subject.parameters, subject.facts
    if not {"pixel_values", "pixel_values_videos"} & set(names) or _flat(subject):
        return {}
    layouts = ["plain", "listed"] if "input_ids" in names else ["plain"]
    if "pixel_values" not in names:
        layouts = ["clip"]
    elif facts.number(_FRAMES, "vision"):
        layouts = ["clip", *layouts]
    asked = subject.image_size
    sides = [None, *facts.sides()] if asked is None else [(asked, asked)]
    views = [View(layout, side) for layout in layouts for side in sides]
    if asked is None and facts.value(
        ("image_grid_pinpoints",)
    ):  # an image is cut into tiles, after a small picture of all of it
        views = [View("listed", side, tiles) for side in facts.sides() for tiles in (2, 3, 5)] + views
    found: Options = {"view": views}
    if "image_sizes" in names:
        found["image_sizes"] = [False, True]
    if "pixel_mask" in names:
        found["pixel_mask"] = ["padded", "full"]
    return found


def _flat(subject: Subject) -> bool:
    """Whether the model takes patches and the grids that they come from."""
    return bool({"image_grid_thw", "video_grid_thw", "spatial_shapes"} & set(subject.parameters))


def _grid(making: Making) -> tuple[int, int]:
    merge = making.facts.number(("spatial_merge_size", "merge_size"), "vision") or 1
    return (2 + making.sizes.rows) * merge, (2 + making.sizes.columns) * merge


def _side(making: Making) -> tuple[int, int]:
    """Height and width: near the configured ones, and not equal, where the model takes any."""
    view = making.plan["view"]
    if view.fixed:
        return view.fixed
    patch = making.facts.patch()
    step = -(-_STEP // patch) * patch
    sides = making.facts.sides()
    height, width = sides[0] if sides else (2 * step, 2 * step)
    height, width = min(height, _ROOMY), min(width, _ROOMY)
    sizes = making.sizes
    return height + sizes.rows * step + sizes.odd, width + sizes.columns * step + sizes.odd


def pixel_values(making: Making) -> torch.Tensor:
    if _flat(making.subject):
        return _patches(making)
    batch, channels = making.sizes.batch, making.facts.channels()
    layout = making.plan["view"].layout
    if layout == "clip":
        frames = (making.facts.number(_FRAMES, "vision") or 4) + making.sizes.frames
        return making.picture(batch, frames, channels, *_side(making))
    images = making.picture(batch, channels, *_side(making))
    if layout == "plain":
        return images
    return making.picture(batch, making.plan["view"].images, *images.shape[1:])


def pixel_values_videos(making: Making) -> torch.Tensor | None:
    return None if making.takes("pixel_values") else pixel_values(making)


def _patches(making: Making) -> torch.Tensor:
    rows, columns = _grid(making)
    depth = making.facts.number(("temporal_patch_size",), "vision") or 1
    width = making.facts.channels() * depth * making.facts.patch() ** 2
    if making.takes("spatial_shapes"):
        return making.normal(making.sizes.batch, rows * columns, width)
    return making.normal(making.sizes.batch * rows * columns, width)


def flattened_patches(making: Making) -> torch.Tensor:
    """Patches in a row, each after its own row and column in the image, counted from 1."""
    rows, columns = _grid(making)
    patches = making.normal(making.sizes.batch, rows * columns, making.facts.channels() * making.facts.patch() ** 2)
    places = torch.cartesian_prod(torch.arange(1, rows + 1), torch.arange(1, columns + 1))
    return torch.cat([places.repeat(making.sizes.batch, 1, 1), patches], dim=-1)


def image_grid_thw(making: Making) -> torch.Tensor:
    return torch.tensor([(1, *_grid(making))]).repeat(making.sizes.batch, 1)


def video_grid_thw(making: Making) -> torch.Tensor | None:
    return image_grid_thw(making) if "pixel_values_videos" in making.made else None


def spatial_shapes(making: Making) -> torch.Tensor:
    return torch.tensor([_grid(making)]).repeat(making.sizes.batch, 1)


def pixel_attention_mask(making: Making) -> torch.Tensor | None:
    if not making.takes("spatial_shapes"):
        return None
    return torch.ones(making.made["pixel_values"].shape[:2], dtype=torch.int64)


def image_sizes(making: Making) -> torch.Tensor | None:
    if not making.plan.get("image_sizes") or "pixel_values" not in making.made:
        return None
    return torch.tensor([making.made["pixel_values"].shape[-2:]]).repeat(making.sizes.batch, 1)


def pixel_mask(making: Making) -> torch.Tensor:
    """Of the first image, half the height and the width is padding, where the model takes such a mask."""
    pixels = making.made["pixel_values"]
    mask = torch.ones(*pixels.shape[:-3], *pixels.shape[-2:], dtype=torch.int64)
    if making.plan.get("pixel_mask") == "padded":
        mask[0, ..., pixels.shape[-2] // 2 :, :] = 0
        mask[0, ..., :, pixels.shape[-1] // 2 :] = 0
    return mask


def input_points(making: Making) -> torch.Tensor:
    """For each image two prompts of clicks."""
    height, width = making.made["pixel_values"].shape[-2:]
    return making.uniform(making.sizes.batch, 2, making.sizes.regions, 2) * torch.tensor([width, height])


def input_labels(making: Making) -> torch.Tensor | None:
    """Whether a click lies on the object."""
    points = making.made.get("input_points")
    return None if points is None else making.integers(0, 2, *points.shape[:-1])


def visual_features(making: Making) -> torch.Tensor | None:
    width = making.facts.number(("visual_feat_dim", "visual_embedding_dim"))
    return making.normal(making.sizes.batch, making.sizes.regions, width) if width else None


def visual_pos(making: Making) -> torch.Tensor:
    width = making.facts.number(("visual_pos_dim",)) or 4
    return making.uniform(making.sizes.batch, making.sizes.regions, width)


RULES: dict[str, Any] = {
    "pixel_values": pixel_values,
    "pixel_values_videos": pixel_values_videos,
    "flattened_patches": flattened_patches,
    "image_grid_thw": image_grid_thw,
    "video_grid_thw": video_grid_thw,
    "spatial_shapes": spatial_shapes,
    "pixel_attention_mask": pixel_attention_mask,
    "image_sizes": image_sizes,
    "pixel_mask": pixel_mask,
    "input_points": input_points,
    "input_labels": input_labels,
    "visual_feats": visual_features,
    "visual_embeds": visual_features,
    "visual_pos": visual_pos,
}
