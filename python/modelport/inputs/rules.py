"""One rule for each name that a forward signature may hold, in the order in which inputs are made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from . import audio, series, text, vision
from .making import Making, Options, Subject

Rule = Callable[[Making], Any]


def attention_mask(making: Making) -> torch.Tensor | None:
    """Of the text where there is one, else of the audio."""
    mask = text.attention_mask(making)
    return audio.attention_mask(making) if mask is None else mask


# What is seen and heard comes before the text, which holds a placeholder for each of its features.
RULES: dict[str, Rule] = {
    **vision.RULES,
    **audio.RULES,
    **series.RULES,
    **text.RULES,
    "attention_mask": attention_mask,
}


def options(subject: Subject) -> Options:
    """Choices that names and numbers do not settle, each with what to try, likeliest first."""
    found: Options = {}
    for kind in (vision, audio, series, text):
        found |= kind.options(subject)
    return found


def without_rule(subject: Subject) -> list[str]:
    """Parameters that the model must have and that nothing here makes; the main one counts even if it has a default."""
    main = getattr(subject.cls, "main_input_name", None)
    needed = [name for name, required in subject.parameters.items() if required or name == main]
    return [name for name in needed if name not in RULES]


def make(making: Making) -> dict[str, Any]:
    """The inputs, in the order of the signature."""
    parameters = making.subject.parameters
    for name, rule in RULES.items():
        if name in parameters:
            value = rule(making)
            if value is not None:
                making.made[name] = value
    inputs = {name: making.made[name] for name in parameters if name in making.made}
    if making.subject.cls.__name__.endswith("ForMultipleChoice"):
        inputs |= {name: _choices(value) for name, value in inputs.items() if name in text.RULES}
    return inputs


def _choices(value: torch.Tensor) -> torch.Tensor:
    """Three texts to choose from, on an axis after the batch."""
    return torch.stack([value.roll(i, 0) for i in range(3)], dim=1)
