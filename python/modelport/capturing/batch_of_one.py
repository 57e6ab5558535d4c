"""An example with a batch of one, whose batch is to be dynamic all the same.

From a size of 1 a capture learns nothing: one row broadcasts against anything. Processors and tokenizers give one row,
so the example is captured with a second one beside it, if the model takes that and the graph serves one row too."""

from __future__ import annotations

from typing import Any

import torch

from ..base.structure import Flat
from .trial_inputs import inside, with_further_row


def with_two_rows(flat: Flat) -> Flat | None:
    """The example with a second row, if all that may have a batch has one row. Lists of numbers have no batch."""
    rows = [leaf.shape[0] for leaf in flat.leaves if _may_have_batch(leaf)]
    if set(rows) != {1}:
        return None
    leaves = [with_further_row(leaf) if _may_have_batch(leaf) else leaf for leaf in flat.leaves]
    return Flat(flat.names, leaves, flat.spec)


def _may_have_batch(leaf: Any) -> bool:
    return isinstance(leaf, torch.Tensor) and (leaf.dim() > 1 or list(leaf.shape) == [1])


def serves_one_row(program: Any, flat: Flat) -> bool:
    """Whether a program of two rows left their number open, and takes the example as it was given."""
    wanted = [list(leaf.shape) for leaf in flat.tensors().values()]
    sizes: dict[str, int] = {}
    for (_, _, symbolic), shape in zip(program.inputs(), wanted, strict=True):
        for size, given in zip(symbolic, shape, strict=True):
            if size.isidentifier():
                sizes.setdefault(size, given)
    within = all(inside(sizes[dim["name"]], dim["lo"], dim["hi"]) for dim in program.dims() if dim["name"] in sizes)
    return within and program.input_sizes(sizes) == wanted and program.admits(sizes)
