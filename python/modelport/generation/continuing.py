"""An example call that continues a text by several tokens, made of the calls that `generate` made.

`generate` first reads the whole prompt and then goes on token by token. Both are cases of one call: some tokens (at
least one) after a past (maybe none). It is made of three steps put side by side, and every axis gets a name by what it
did in the calls before."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping
from typing import Any

import torch
from transformers.cache_utils import Cache

from ..base.structure import flatten
from ..capturing.dynamic import MaybeEmpty
from .watching import Call

STEPS = 3  # put side by side; distinct from the batch of 2
CALLS = 1 + STEPS  # that are watched: the first is the prompt's
STATE = "past_"  # what names of inputs begin with that are handed from call to call
BATCH, SEQUENCE, PAST, TOTAL = "batch_size", "sequence_length", "past_sequence_length", "total_sequence_length"
# How caches call states of convolutions and recurrences.
_LENGTHLESS = {"conv_states", "recurrent_states"}
# What `generate` says to the model about how to answer: the graph has its own answer to that.
_FLAGS = (
    "use_cache",
    "logits_to_keep",
    "return_dict",
    "output_attentions",
    "output_hidden_states",
    "num_logits_to_keep",
)


@dataclasses.dataclass
class Example:
    """Inputs of a call, and a name for each axis that may change: by input name and axis."""

    inputs: dict[str, Any]
    axes: dict[str, dict[int, str]]

    def dynamic_shapes(self) -> dict[str, dict[int, Any]]:
        """As capture takes them, by the names of the flat tensors; only the past may be empty."""
        past = MaybeEmpty(PAST)
        return {n: {a: past if role == PAST else role for a, role in axes.items()} for n, axes in self.axes.items()}


def without_flags(call: Mapping[str, Any]) -> Call:
    return {name: value for name, value in call.items() if name not in _FLAGS and not isinstance(value, bool)}


def continuing(calls: list[Call]) -> Example:
    """The call after the first, grown to three tokens."""
    prefill, *steps = [without_flags(call) for call in calls]
    steps = steps[:STEPS]
    inputs: dict[str, Any] = {}
    axes: dict[str, dict[int, str]] = {}
    batch = _batch(steps[0])
    for name, value in steps[0].items():
        if isinstance(value, Cache):
            inputs[name] = copy.deepcopy(value)
            axes |= _cache_axes(name, value, steps[1][name], batch)
        elif isinstance(value, torch.Tensor) and name.startswith(STATE):
            inputs[name] = value
            axes |= _cache_axes(name, value, steps[1][name], batch)
        elif isinstance(value, torch.Tensor):
            inputs[name], axes[name] = _side_by_side(name, prefill.get(name), [step[name] for step in steps], batch)
        else:
            inputs[name] = value
    return Example(inputs, axes)


def axes_of_step(step: Call) -> dict[str, dict[int, Any]] | None:
    """Every axis may change but those of states that are as long whatever was read, of which there may be any number of
    rows. None where there is no such state."""
    tensors = flatten(step).tensors()
    states = {name for name in tensors if not _LENGTHLESS.isdisjoint(name.split("."))}
    if not states:
        return None
    rows, axes = _batch(step), {}
    for name, tensor in tensors.items():
        several = [axis for axis, size in enumerate(tensor.shape) if size > 1]
        changing = list(_batch_axis(tensor, rows)) if name in states else several
        axes[name] = dict.fromkeys(changing, torch.export.Dim.AUTO)
    return axes


def _batch(step: Call) -> int:
    first = next(value for value in step.values() if isinstance(value, torch.Tensor))
    return int(first.shape[0])


def _cache_axes(name: str, before: Any, after: Any, batch: int) -> dict[str, dict[int, str]]:
    later = flatten({name: after}).tensors()
    axes = {}
    for leaf, tensor in flatten({name: before}).tensors().items():
        grown = [axis for axis, size in enumerate(tensor.shape) if later[leaf].shape[axis] == size + 1]
        axes[leaf] = _batch_axis(tensor, batch) | dict.fromkeys(grown, PAST)
    return axes


def _side_by_side(
    name: str, prompt: torch.Tensor | None, steps: list[torch.Tensor], batch: int
) -> tuple[torch.Tensor, dict[int, str]]:
    """One input of the steps as one tensor: what has a column a token is joined, what has grown is taken as it is."""
    first, second, last = steps[0], steps[1], steps[-1]
    axes = _batch_axis(first, batch)
    for axis, size in enumerate(first.shape):
        if second.shape[axis] == size + 1:
            return last, axes | {axis: TOTAL}
        if size == 1 and axis not in axes and _has_a_column_a_token(name, prompt, axis):
            return torch.cat(steps, dim=axis), axes | {axis: SEQUENCE}
    return first, axes


def _batch_axis(tensor: torch.Tensor, batch: int) -> dict[int, str]:
    found = [axis for axis, size in enumerate(tensor.shape) if size == batch]
    return {found[0]: BATCH} if found else {}


def _has_a_column_a_token(name: str, prompt: torch.Tensor | None, axis: int) -> bool:
    """A prompt of several tokens shows it. The one token that an encoder-decoder starts with does not; its inputs have
    names that do."""
    if prompt is not None and prompt.shape[axis] > 1:
        return True
    return name.startswith("decoder_") and axis == 1
