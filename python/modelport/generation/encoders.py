"""The encoder of pictures or sound as a part: its file, and what it takes."""

from __future__ import annotations

import torch

from ..base.structure import flatten
from .cutting import Cut
from .features import InMerge
from .modules import Encoder
from .part import Part

_FILES = {"image": "vision_encoder", "video": "video_encoder", "audio": "audio_encoder"}


def encoder_name(modality: str) -> str:
    return _FILES[modality]


def encoder_part(cut: Cut, names: list[str], modality: str) -> Part:
    """Its inputs are what its producers take, or all media where that is made from them first."""
    media = {name: cut.call[name] for name in names if isinstance(cut.call[name], torch.Tensor)}
    if any(isinstance(one.place, InMerge) for one in cut.features):
        return Part(Encoder(cut, modality).eval(), media)
    calls = [call for producer in cut.producers if producer.modality == modality for call in producer.calls]
    taken = [leaf for call in calls for leaf in flatten(call).tensors().values()]
    own = {name: value for name, value in media.items() if any(value is leaf for leaf in taken)}
    follows = any(not any(leaf is value for value in cut.call.values()) for leaf in taken)
    return Part(Encoder(cut, modality).eval(), media if follows else own)
