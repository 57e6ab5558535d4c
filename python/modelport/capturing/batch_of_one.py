"""An example with a batch of one, whose batch is to be dynamic all the same.

From a size of 1 a capture learns nothing: one row broadcasts against anything. Processors and tokenizers give one row,
so the example is captured with a second one beside it, if the model takes that and the graph serves one row too."""

from __future__ import annotations

from typing import Any

import torch

from ..base.structure import Flat
from .trial_inputs import with_further_row


def with_two_rows(flat: Flat) -> Flat | None:
    """The example with a second row, if all that may have a batch has one row. Lists of numbers have no batch."""
    rows = [leaf for leaf in flat.leaves if isinstance(leaf, torch.Tensor) and _may_have_batch(leaf)]
    if not rows or any(leaf.shape[0] != 1 for leaf in rows):
        return None
    leaves = [with_further_row(leaf) if any(leaf is row for row in rows) else leaf for leaf in flat.leaves]
    return Flat(flat.names, leaves, flat.spec)


def _may_have_batch(leaf: torch.Tensor) -> bool:
    return leaf.dim() > 1 or (leaf.dim() == 1 and leaf.shape[0] == 1)


def serves_one_row(program: Any, flat: Flat) -> bool:
    """Whether a program of two rows left their number open, and takes the example as it was given."""
    wanted = [list(leaf.shape) for leaf in flat.tensors().values()]
    sizes: dict[str, int] = {}
    for (_, _, symbolic), shape in zip(program.inputs(), wanted, strict=True):
        for size, given in zip(symbolic, shape, strict=True):
            if size.isidentifier():
                sizes.setdefault(size, given)
    ranges = {dim["name"]: (dim["lo"], dim["hi"]) for dim in program.dims()}
    inside = all(
        low <= sizes.get(name, low) and (high is None or sizes.get(name, low) <= high)
        for name, (low, high) in ranges.items()
    )
    return inside and program.input_sizes(sizes) == wanted and program.admits(sizes)
