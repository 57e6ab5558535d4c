"""Inputs that are heard: waves, spectrograms, and masks of where they end."""

from __future__ import annotations

from typing import NamedTuple

import torch

from . import placeholders
from .making import Making, Options, Subject

_SAMPLES = (4000, 16000)  # of a wave: a quarter of a second or one, at the usual rate
_STEPS = 50  # of a spectrogram


class Hearing(NamedTuple):
    """How sound is laid out: which axes there are, and the length of time that they start from."""

    layout: str
    length: int
    fixed: bool = False


def options(subject: Subject) -> Options:
    found: Options = {}
    facts, names = subject.facts, subject.parameters
    bands = facts.bands()
    if "input_values" in names:
        window = facts.number(("max_length",), "audio") if bands else None
        waves = [Hearing(layout, length) for length in _SAMPLES for layout in ("wave", "channel")]
        found["values"] = [Hearing("time first", window, fixed=True), *waves] if window else waves
    if "input_features" in names and bands:
        source = facts.number(("max_source_positions",), "audio")
        window = facts.preprocessor.get("nb_max_frames") or (2 * source if source else None)
        fixed = [Hearing("bands first", window, fixed=True)] if window else []
        found["features"] = [
            Hearing("time first", _STEPS),
            *fixed,
            Hearing("bands first", _STEPS),
            Hearing("one channel", _STEPS),
            Hearing("time first", 8 * _STEPS),
            Hearing("bands first", 8 * _STEPS),
        ]
    return found


def _sound(making: Making, hearing: Hearing) -> torch.Tensor:
    batch, bands = making.sizes.batch, making.facts.bands() or 0
    length = hearing.length if hearing.fixed else int(hearing.length * making.sizes.sound)
    shape = {
        "wave": (batch, length),
        "channel": (batch, making.facts.number(("audio_channels",), "audio") or 1, length),
        "time first": (batch, length, bands),
        "bands first": (batch, bands, length),
        "one channel": (batch, 1, length, bands),
    }
    return making.normal(*shape[hearing.layout])


def input_values(making: Making) -> torch.Tensor:
    return _sound(making, making.plan["values"])


def input_features(making: Making) -> torch.Tensor | None:
    return _sound(making, making.plan["features"]) if "features" in making.plan else None


def noise_sequence(making: Making) -> torch.Tensor | None:
    """The noise that a vocoder shapes, which it would draw itself, differently each time."""
    width = making.facts.number(("model_in_channels",), "audio")
    features = making.made.get("input_features")
    return None if features is None or width is None else making.normal(*features.shape[:2], width)


def attention_mask(making: Making) -> torch.Tensor | None:
    """The first ends after 1/batch of the time, the last at its end; none where all inputs are full."""
    if making.facts.preprocessor.get("return_attention_mask") is False:
        return None
    if "input_values" in making.made:
        # A group norm over time mixes sound and padding: such models are used without a mask.
        if making.plan["values"].layout != "wave" or making.facts.value(("feat_extract_norm",), "audio") == "group":
            return None
        return ends(*making.made["input_values"].shape)
    if "input_features" in making.made and making.plan["features"].layout == "time first":
        return ends(*making.made["input_features"].shape[:2])
    return None


def features_mask(making: Making) -> torch.Tensor | None:
    features, plan = making.made.get("input_features"), making.plan.get("features")
    if features is None or plan is None:
        return None
    length = features.shape[-1 if plan.layout == "bands first" else -2]
    if placeholders.kinds(making.facts):  # one number of placeholders for all rows
        return torch.ones(making.sizes.batch, length, dtype=torch.int64)
    return ends(making.sizes.batch, length)


def decoder_input_values(making: Making) -> torch.Tensor | None:
    """The spectrogram that a speaking model has made so far."""
    bands = making.facts.bands()
    return making.normal(making.sizes.batch, 2 * making.sizes.target, bands) if bands else None


def speaker_embeddings(making: Making) -> torch.Tensor | None:
    width = making.facts.number(("speaker_embedding_dim",), "audio")
    return making.normal(making.sizes.batch, width) if width else None


def ends(batch: int, length: int) -> torch.Tensor:
    stops = torch.arange(1, batch + 1) * length // batch
    return (torch.arange(length) < stops[:, None]).to(torch.int64)


RULES = {
    "input_values": input_values,
    "input_features": input_features,
    "noise_sequence": noise_sequence,
    "decoder_input_values": decoder_input_values,
    "speaker_embeddings": speaker_embeddings,
    "input_features_mask": features_mask,
    "feature_attention_mask": features_mask,
}
