"""Whether one graph serves the prompt (prefill) and every token after it (decode)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

import torch
from transformers.cache_utils import Cache
from transformers.generation.utils import ALL_CACHE_NAMES

from ..base.errors import ExportError
from ..base.structure import flatten, unflatten
from .continuing import PAST, STATE, Example
from .encoder_decoder import PAST_ENCODED
from .watching import Call


def tried(calls: list[Call]) -> list[Call]:
    """The prompt, the first token after it, and one that more has grown before."""
    return [calls[0], calls[1], calls[-1]]


def has_a_past(step: Call) -> bool:
    """Whether something is handed from call to call: a cache, or a state by the names that `generate` knows."""
    own = {n: v for n, v in step.items() if n.startswith(STATE) or n in ALL_CACHE_NAMES or isinstance(v, Cache)}
    return bool(flatten(own).tensors())


def in_form_of(example: Example, inputs: Call) -> Call:
    """The inputs of a call in the form of the example: a cache that has nothing yet has tensors all the same."""
    given = {name: value for name, value in inputs.items() if name in example.inputs}
    for name, value in example.inputs.items():
        is_kept = isinstance(value, Cache) or name.startswith(STATE)
        if is_kept and (name not in given or not flatten({name: given[name]}).tensors()):
            given[name] = _emptied(name, value, example.axes)
    return given


def serves_calls(model: Any, calls: list[tuple[Call, Call]]) -> Callable[[Any], bool]:
    """Whether a captured program gives the logits of the model for calls that `generate` made. Each comes twice: as it
    was made, and as the program takes it."""

    def serves(captured: Any) -> bool:
        return all(_same_logits(model, captured, made, taken) for made, taken in calls)

    return serves


@torch.no_grad()
def _same_logits(model: Any, captured: Any, made: Call, taken: Call) -> bool:
    want = _logits(model(**copy.deepcopy(made)))
    try:
        result = captured.run(**copy.deepcopy(taken))
    except ExportError:  # sizes that it was not captured for
        return False
    got = _logits(result)[:, -want.shape[1] :]
    return got.shape == want.shape and bool(torch.allclose(got, want, atol=1e-3, rtol=1e-3, equal_nan=True))


def _logits(result: Any) -> torch.Tensor:
    return result["logits"] if isinstance(result, dict) else result.logits


def _emptied(name: str, cache: Any, axes: Mapping[str, Mapping[int, str]]) -> Any:
    """The cache, or a tensor of a state, before the first token: no past, and states that are zero."""
    flat = flatten({name: copy.deepcopy(cache)})
    leaves = []
    for leaf, value in zip(flat.names, flat.leaves, strict=True):
        if isinstance(value, torch.Tensor):
            grown = [axis for axis, role in axes.get(leaf, {}).items() if role in (PAST, PAST_ENCODED)]
            value = value.narrow(grown[0], 0, 0) if grown else torch.zeros_like(value)
        leaves.append(value)
    return unflatten(leaves, flat.spec)[name]
