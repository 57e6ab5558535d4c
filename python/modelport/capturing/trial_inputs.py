"""The example inputs at other sizes, for captures and runs that try a condition out."""

from __future__ import annotations

from typing import Any

import torch

from ..base.structure import Flat

Sizes = dict[str, int]  # of dimensions by name

_FEW = 32
_STEP = 0.25  # by which the elements of each further repetition are scaled


def resized(captured: Any, sizes: Sizes) -> Flat:
    """Elements are repeated or cut off, so that they stay admissible; what is repeated is changed where that is safe,
    so that a graph that mixes rows gives other values."""
    flat = captured.inputs
    shapes = iter(captured.program.input_sizes(sizes))
    free = iter(_free_axes(captured))
    leaves = [
        _at_shape(leaf, next(shapes), next(free)) if isinstance(leaf, torch.Tensor) else leaf for leaf in flat.leaves
    ]
    return Flat(flat.names, leaves, flat.spec)


def with_further_row(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor with as many rows again, which are not the same ones where that is safe."""
    return _at_size(tensor, 0, 2 * tensor.shape[0], list(range(1, tensor.dim())))


def inside(size: int, low: int, high: int | None) -> bool:
    return low <= size and (high is None or size <= high)


def shuffled(inputs: Flat, seed: int) -> Flat:
    """The same elements in another order, for a run with other data: graphs that differ may agree for some data by
    chance. What means something by its order stays, as above."""
    generator = torch.Generator().manual_seed(seed)
    leaves = [_shuffled(leaf, generator) if isinstance(leaf, torch.Tensor) else leaf for leaf in inputs.leaves]
    return Flat(inputs.names, leaves, inputs.spec)


def _shuffled(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    flat = tensor.reshape(-1)
    if flat.numel() < 2 or _has_two_values(tensor) or (_is_whole(tensor) and _goes_up(flat)):
        return tensor
    return flat[torch.randperm(flat.numel(), generator=generator)].reshape(tensor.shape)


def _has_two_values(tensor: torch.Tensor) -> bool:
    """Or fewer."""
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    # The first few tell most tensors, and `unique` has no kernel for the smallest types of floats.
    parts = (part if _is_whole(part) else part.double() for part in (tensor.reshape(-1)[:_FEW], tensor))
    return tensor.dtype == torch.bool or all(len(part.unique()) <= 2 for part in parts)


def _is_whole(tensor: torch.Tensor) -> bool:
    return not (tensor.is_floating_point() or tensor.is_complex())


def _goes_up(tensor: torch.Tensor) -> bool:
    return bool((tensor.diff(dim=-1) >= 0).all())


def _free_axes(captured: Any) -> list[list[int]]:
    """For each input the axes that have no fixed size."""
    return [
        [axis for axis, size in enumerate(sizes) if not size.isdecimal()] for _, _, sizes in captured.program.inputs()
    ]


def _at_shape(tensor: torch.Tensor, shape: list[int], free: list[int]) -> torch.Tensor:
    for axis, size in enumerate(shape):
        if tensor.shape[axis] != size:
            tensor = _at_size(tensor, axis, size, [other for other in free if other != axis])
    return tensor


def _at_size(tensor: torch.Tensor, axis: int, size: int, others: list[int]) -> torch.Tensor:
    have = tensor.shape[axis]
    if size <= have or have == 0:
        return tensor.index_select(axis, torch.arange(size, device=tensor.device) % max(have, 1))
    parts, left = [], size
    # A text goes on with its last tokens: among the first may be those of images, of which there are as many as before.
    from_its_end = axis > 0 and _is_whole(tensor)
    for turn in range(-(-size // have)):
        taken = min(have, left)
        part = _varied(tensor, turn, others).narrow(axis, have - taken if from_its_end else 0, taken)
        parts.append(part)
        left -= have
    return torch.cat(parts, axis)


def _varied(tensor: torch.Tensor, turn: int, others: list[int]) -> torch.Tensor:
    """A repetition that is not the same. Real numbers are scaled; ids are moved along another free axis. What has two
    values or goes up steadily (masks, positions, offsets) means something by its order and stays."""
    if turn == 0 or tensor.numel() == 0 or _has_two_values(tensor):
        return tensor
    if not _is_whole(tensor):
        return tensor * (1 + _STEP * turn)
    rows = tensor.movedim(others[-1], -1) if others else tensor
    if not others or rows.shape[-1] < 2 or _goes_up(rows):
        return tensor
    return tensor.roll(turn, others[-1])
