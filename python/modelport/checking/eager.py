"""The model that an artifact is held against, loaded as transformers loads it."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping
from typing import Any

import torch

from ..base.structure import flatten
from ..values.tolerance import same_values


@dataclasses.dataclass
class Values:
    """What a model gives, by dotted name, and which of it the next run would give otherwise."""

    by_name: dict[str, Any]
    random: list[Any]

    def is_random(self, value: Any) -> bool:
        return any(value is drawn for drawn in self.random)


def values_of(model: Any, inputs: Mapping[str, Any]) -> Values:
    """Inputs and random state stay as they are. A model that asked for random numbers runs once more with others."""
    rng = torch.get_rng_state()
    try:
        given = _run(model, inputs)
        random = []
        if not torch.equal(torch.get_rng_state(), rng):
            again = _run(model, inputs)
            varies = [name for name, value in given.items() if not _equal(value, again.get(name))]
            given |= {name: torch.as_tensor(given[name]) for name in varies}  # numbers, too
            random = [given[name] for name in varies]
    finally:
        torch.set_rng_state(rng)
    return Values(given, random)


@torch.no_grad()
def _run(model: Any, inputs: Mapping[str, Any]) -> dict[str, Any]:
    flat = flatten(model(**copy.deepcopy(dict(inputs))))
    return dict(zip(flat.names, flat.leaves, strict=True))


def _equal(value: Any, again: Any) -> bool:
    """Whether two runs gave the same; kernels may add in another order each time."""
    both = isinstance(value, torch.Tensor) and isinstance(again, torch.Tensor)
    return same_values(again, value) if both else value is again or bool(value == again)
