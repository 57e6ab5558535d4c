"""Inputs that are series over time: their past, features of dates and of the series. Never their future."""

from __future__ import annotations

import torch

from .making import Making, Options, Subject

_LENGTHS = ("context_length", "sequence_length")


def options(subject: Subject) -> Options:
    if "past_values" not in subject.parameters:
        return {}
    several = subject.facts.number(("num_input_channels",))
    return {"series": ["channels", "plain"] if several else ["plain"]}


def _length(making: Making) -> int:
    length = making.facts.number(_LENGTHS) or making.sizes.sequence
    lags = making.facts.value(("lags_sequence",)) if making.takes("past_time_features") else None
    return length + (max(lags) if lags else 0)


def past_values(making: Making) -> torch.Tensor:
    """Each a walk of its own."""
    shape = [making.sizes.batch, _length(making)]
    if making.plan["series"] == "channels":
        shape.append(making.facts.number(("num_input_channels",)) or 1)
    elif (making.facts.number(("input_size",)) or 1) > 1:
        shape.append(making.facts.number(("input_size",)) or 1)
    return making.normal(*shape).cumsum(1)


def past_time_features(making: Making) -> torch.Tensor:
    return making.normal(making.sizes.batch, _length(making), making.facts.number(("num_time_features",)) or 1)


def future_time_features(making: Making) -> torch.Tensor:
    length = making.facts.number(("prediction_length",)) or 1
    return making.normal(making.sizes.batch, length, making.facts.number(("num_time_features",)) or 1)


def past_observed_mask(making: Making) -> torch.Tensor | None:
    if not making.subject.parameters["past_observed_mask"]:
        return None
    return making.uniform(*making.made["past_values"].shape) > 0.2


def static_categorical_features(making: Making) -> torch.Tensor | None:
    count = making.facts.number(("num_static_categorical_features",))
    if not count:
        return None
    kinds = making.facts.value(("cardinality",)) or [1]
    return torch.cat([making.integers(0, kinds[i % len(kinds)], making.sizes.batch, 1) for i in range(count)], dim=1)


def static_real_features(making: Making) -> torch.Tensor | None:
    count = making.facts.number(("num_static_real_features",))
    return making.normal(making.sizes.batch, count) if count else None


def past_values_padding(making: Making) -> torch.Tensor | None:
    """1 where the series has not begun."""
    if not making.subject.parameters["past_values_padding"]:
        return None
    batch, length = making.made["past_values"].shape[:2]
    return (torch.arange(length) < torch.arange(batch - 1, -1, -1)[:, None]).to(torch.float32)


def freq(making: Making) -> torch.Tensor | None:
    return making.integers(0, making.facts.number(("freq_size",)) or 1, making.sizes.batch, 1)


RULES = {
    "past_values": past_values,
    "past_time_features": past_time_features,
    "past_observed_mask": past_observed_mask,
    "static_categorical_features": static_categorical_features,
    "static_real_features": static_real_features,
    "future_time_features": future_time_features,
    "past_values_padding": past_values_padding,
    "freq": freq,
}
