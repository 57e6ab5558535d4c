"""Preparers of inputs: functions that add to the inputs of a model before it is captured.

transformers.exporters needs them for encoders of images and sounds, to compute outside of the graph what depends on
data: lengths, window indices, positions. Here the graph computes all that itself, for any data, so that none is built
in. One that is registered runs all the same: for inputs that a model is to get in a form of its own."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from typing import Any

import torch

Preparer = Callable[[torch.nn.Module, MutableMapping[str, Any]], None]
_PREPARERS: dict[tuple[str, ...], Preparer] = {}


def register_export_input_preparer(*markers: str) -> Callable[[Preparer], Preparer]:
    """Decorates `prepare(model, inputs)`, which changes the inputs in place. It runs where all markers are given."""

    def register(prepare: Preparer) -> Preparer:
        _PREPARERS[markers] = prepare
        return prepare

    return register


def precompute_export_inputs(model: torch.nn.Module, inputs: MutableMapping[str, Any]) -> None:
    """Runs the preparers whose markers are there."""
    for markers, prepare in _PREPARERS.items():
        if all(inputs.get(marker) is not None for marker in markers):
            prepare(model, inputs)
