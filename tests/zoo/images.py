"""Inputs of models that see: images of any size, of the configured size, with padding masks."""

from __future__ import annotations

from typing import Any

import torch

from .row import Draw, Inputs


def side(config: Any) -> tuple[int, int]:
    """Height and width that the configuration (or its vision part) names."""
    for part in ("vision_config", "image_config"):
        config = getattr(config, part, config)
    size = config.image_size
    return (size, size) if isinstance(size, int) else tuple(size)


def pixels(draw: Draw) -> Inputs:
    """Images of the size asked for, for networks that take any."""
    size = draw.size
    return {"pixel_values": draw.picture(size.batch, 3, size.height, size.width)}


def fixed_pixels(draw: Draw) -> Inputs:
    """Images of the one size that the configuration names."""
    return {"pixel_values": draw.picture(draw.size.batch, 3, *side(draw.config))}


def masked_pixels(draw: Draw) -> Inputs:
    """Images padded to one size: of the first, half the height and the width is padding."""
    size = draw.size
    mask = torch.ones(size.batch, size.height, size.width, dtype=torch.int64)
    mask[0, size.height // 2 :] = 0
    mask[0, :, size.width // 2 :] = 0
    return {**pixels(draw), "pixel_mask": mask}
