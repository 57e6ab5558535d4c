"""Models that `generate` hands tokens and features to, and that put them together themselves: an encoder, and a decoder
that takes both for the prompt."""

from __future__ import annotations

from typing import Any

import torch
from transformers.cache_utils import Cache

from ..base.structure import flatten
from .cutting import Cut, DoesNotRun
from .encoders import encoder_name, encoder_part
from .features import Features, InResult, at, candidates, rows_of
from .modules import Reader
from .part import Part
from .roles import alike
from .watching import Call


def reading_parts(cut: Cut) -> dict[str, Part] | None:
    """None where the model is not handed what producers gave. Such models look for features in the prompt alone, which
    is therefore read by a graph of its own."""
    cut.features = [one for name, value in cut.calls[0].items() for one in _as_made(cut, name, value)]
    if not cut.features:
        return None
    media = [n for n, v in cut.call.items() if isinstance(v, torch.Tensor) and n not in cut.calls[0]]
    encoders = {encoder_name(modality): encoder_part(cut, media, modality) for modality in cut.modalities}
    prompt, step = (_own_call(cut, call) for call in cut.calls[:2])
    reader = Reader(cut.stepping).eval()
    return encoders | {
        "decoder_model": Part(reader, prompt, gives_logits=True),
        "decoder_with_past_model": Part(reader, step, gives_logits=True),
    }


def _as_made(cut: Cut, name: str, value: Any) -> list[Features]:
    """The argument as something that a producer gave; as rows, if that makes no difference."""
    if not isinstance(value, torch.Tensor) or not value.is_floating_point():
        return []
    for place, producer in enumerate(cut.producers):
        for path in candidates(producer.results[0]) if len(producer.results) == 1 else ():
            made = at(producer.results[0], path)
            if isinstance(made, torch.Tensor) and alike(made, value):
                found = InResult(place, path)
                found.flat = _gives_the_same(cut, {name: rows_of(value)})
                return [Features(name, producer.modality, found)]
    return []


def _gives_the_same(cut: Cut, changed: Call) -> bool:
    want = cut.step(cut.calls[0]).logits
    try:
        with cut.trying():
            return alike(cut.step(cut.calls[0] | changed).logits, want)
    except DoesNotRun:
        return False


def _own_call(cut: Cut, call: Call) -> Call:
    """Tensors and caches that are not empty, features as they are taken."""
    own = {n: v for n, v in call.items() if isinstance(v, torch.Tensor | Cache) and flatten({n: v}).tensors()}
    flat = {one.name: rows_of(own[one.name]) for one in cut.features if one.name in own and one.place.flat}
    return own | flat
