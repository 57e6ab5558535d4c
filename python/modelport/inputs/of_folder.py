"""Example inputs for the model of a checkpoint folder: by rule, held against what its own processor makes.

Rules make better examples where they know the model: their sizes differ from each other and from the numbers of the
configuration, so that a capture keeps axes apart, and they make further sizes. What the inputs are called and what they
look like, the processor knows best: where rules do otherwise, or know nothing, it is believed."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import torch

from ..base.errors import ExportError
from ..weights.loading import quiet_transformers, read_preprocessor
from .example import example_inputs, subject_of
from .processed import can_process, processed_inputs, takes_media


class Example(NamedTuple):
    inputs: dict[str, Any]
    told: str  # who made them, and why not another


def example_for(
    folder: Path, model_or_class: Any, config: Any = None, *, trust: bool = False, **settings: Any
) -> Example:
    """`settings` are those of `example_inputs`; `trust` lets code in the folder run, for a processor that needs it."""
    subject = subject_of(model_or_class, config, settings.get("task"))
    refused: ExportError | None = None
    made: dict[str, Any] | None = None
    try:
        with quiet_transformers():
            made = example_inputs(model_or_class, config, preprocessor=read_preprocessor(folder), **settings)
    except ExportError as error:
        if error.code != "E0310":
            raise
        refused = error
    if not can_process(folder) or (made is not None and not takes_media(subject.parameters)):
        return _by_rule(made, refused, "")
    try:
        batch = settings.get("batch") or 2
        processed = processed_inputs(folder, subject.parameters, batch=batch, trust=trust)
    except Exception as error:  # processors are programs of their own, and may lack packages
        return _by_rule(made, refused, f"; the processor failed: {_first_line(error)}")
    if made is None:
        return Example(processed, f"made by the checkpoint's own processor; {_first_line(refused)}")
    differs = _difference(processed, made)
    if not differs:
        return Example(made, "made by rule, as the checkpoint's own processor does")
    rest = {name: value for name, value in made.items() if name not in processed and _is_needed(subject, name)}
    return Example(
        processed | rest, f"made by the checkpoint's own processor, because rules would do otherwise: {differs}"
    )


def _by_rule(made: dict[str, Any] | None, refused: ExportError | None, why: str) -> Example:
    if refused is not None:
        raise refused
    return Example(made or {}, f"made by rule{why}")


def _is_needed(subject: Any, name: str) -> bool:
    """What no processor makes: the beginning of what is to be said."""
    return subject.parameters[name] or name.startswith("decoder_")


def _difference(processed: dict[str, Any], made: dict[str, Any]) -> str:
    """Where two makings are of different kinds; sizes that are free may differ."""
    for name, value in processed.items():
        if name not in made:
            return f"they make no {name}"
        other = made[name]
        if not isinstance(value, torch.Tensor) or not isinstance(other, torch.Tensor):
            continue
        if value.dim() != other.dim() or value.is_floating_point() != other.is_floating_point():
            return f"{name} has {value.dim()} axes, and theirs {other.dim()}"
        if value.is_floating_point() and value.dim() > 1 and not _same_features(value, other):
            return f"{name} is {list(value.shape)}, and theirs {list(other.shape)}"
    return ""


def _same_features(value: torch.Tensor, other: torch.Tensor) -> bool:
    """Channels, bands or the numbers of a patch: an axis after the first that both have in common. A plain wave, which
    has a row for each of the batch and one free axis, has none."""
    if value.dim() == 2 and value.shape[0] == other.shape[0]:
        return True
    return any(a == b for a, b in zip(value.shape[1:], other.shape[1:], strict=True))


def _first_line(error: Exception | None) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
