"""Calls and shapes in the form that a graph takes them: with everything it takes, and axes that may be empty."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

import torch

from ..base.structure import flatten, unflatten
from ..capturing.dynamic import MaybeEmpty
from .continuing import BATCH, PAST, SEQUENCE, Example
from .cutting import Cut
from .watching import Call


def rows_axis(modality: str) -> str:
    return f"num_{modality}_tokens"


def shapes(axes: Mapping[str, Mapping[int, str]], cut: Cut) -> dict[str, dict[int, Any]]:
    may_be_empty = {PAST, *map(rows_axis, cut.modalities)}
    dims = {role: MaybeEmpty(role) for role in may_be_empty}
    return {name: {axis: dims.get(role, role) for axis, role in own.items()} for name, own in axes.items()}


def complete(call: Call, example: Example) -> Call:
    """A call with everything that the graph takes: caches with nothing in them, and nothing carried for a step."""
    missing = [name for name in example.inputs if not flatten({name: call.get(name)}).tensors()]
    tokens = call["inputs_embeds"] if "inputs_embeds" in call else call["input_ids"]
    sizes = {PAST: 0, SEQUENCE: tokens.shape[1]}
    return call | {name: _nothing(name, example, sizes) for name in missing}


def _nothing(name: str, example: Example, sizes: Mapping[str, int]) -> Any:
    """Zeros in the structure of an input; axes of which nothing is said, other than the batch, are empty."""
    flat = flatten({name: copy.deepcopy(example.inputs[name])})
    leaves = []
    for leaf, value in zip(flat.names, flat.leaves, strict=True):
        if isinstance(value, torch.Tensor):
            roles = {axis: role for axis, role in example.axes[leaf].items() if role != BATCH}
            shape = [sizes.get(roles[axis], 0) if axis in roles else size for axis, size in enumerate(value.shape)]
            value = value.new_zeros(shape)
        leaves.append(value)
    return unflatten(leaves, flat.spec)[name]


def gives_logits(cut: Cut, calls: list[Call], example: Example) -> Callable[[Callable[..., Any]], bool]:
    """Whether a program gives, for the prompt and for a step, the logits of the model."""
    checks = [(cut.step(own).logits, complete(call, example)) for own, call in zip(cut.calls[:2], calls, strict=False)]

    def does(run: Callable[..., Any]) -> bool:
        results = [(run(**copy.deepcopy(call))["logits"], want) for want, call in checks]
        return all(torch.allclose(got[:, -want.shape[1] :], want, atol=1e-3, rtol=1e-3) for got, want in results)

    return does
