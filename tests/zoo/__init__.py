"""The zoo: tiny models with random weights across the architectures that transformers offers."""

from . import (
    audio,
    decoders,
    detection,
    encoders,
    moe,
    multimodal,
    recurrent,
    segmentation,
    seq2seq,
    time_series,
    video,
    vision,
    vlm,
)
from .row import Row, Size

FAMILIES = (
    encoders,
    decoders,
    moe,
    recurrent,
    seq2seq,
    vision,
    detection,
    segmentation,
    audio,
    video,
    multimodal,
    vlm,
    time_series,
)
ROWS: list[Row] = [row for family in FAMILIES for row in family.ROWS]

__all__ = ["ROWS", "Row", "Size"]
