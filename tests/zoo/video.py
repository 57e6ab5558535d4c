"""Video encoders and classifiers."""

from __future__ import annotations

from .row import BATCHES, IMAGES, Draw, Inputs, Make, Row
from .vision import VIT

VIDEO = {**VIT, "num_frames": 6, "tubelet_size": 2}


def clips(draw: Draw) -> Inputs:
    """Clips of the length and image size that the configuration names."""
    config = draw.config
    shape = (draw.size.batch, config.num_frames, 3, config.image_size, config.image_size)
    return {"pixel_values": draw.picture(*shape)}


def clips_of_any_length(draw: Draw) -> Inputs:
    side = draw.config.image_size
    shape = (draw.size.batch, draw.size.frames, 3, side, side)
    return {"pixel_values_videos": draw.picture(*shape)}


def video(name: str, model_class: str, make: Make = clips, sizes=BATCHES, **overrides) -> Row:
    return Row(name, "video", model_class, {**VIDEO, **overrides}, make, sizes)


ROWS = [
    video("videomae", "VideoMAEForVideoClassification"),
    video("timesformer", "TimesformerForVideoClassification"),
    video("vivit", "VivitForVideoClassification", tubelet_size=[2, 8, 8]),
    video("vjepa2", "VJEPA2Model", clips_of_any_length, IMAGES, crop_size=40, patch_size=8,
          frames_per_clip=6, mlp_ratio=2, pred_hidden_size=24, pred_num_attention_heads=2,
          pred_num_hidden_layers=1, pred_num_mask_tokens=2, hidden_size=48),
]
