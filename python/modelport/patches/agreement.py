"""A replacement that was written for one model, in others that have a function like it: kept where values agree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _pytree as pytree

from ..base import core
from ..symbolic.replaced_attributes import Factory


def where_values_agree(factory: Factory) -> Factory:
    """The replacement gives the result of a recorded call, unless the original gives other values for its inputs."""

    def checked(original: Callable[..., Any]) -> Callable[..., Any]:
        replacement = factory(original)
        replacement = replacement.__func__ if isinstance(replacement, staticmethod) else replacement

        def call(*args: Any, **kwargs: Any) -> Any:
            if not core.is_recording():
                return original(*args, **kwargs)
            inputs = pytree.tree_map(lambda leaf: leaf, (args, kwargs))  # a function may take from a dict it is given
            result = replacement(*args, **kwargs)
            return result if _agrees(result, replacement, original, inputs) else original(*args, **kwargs)

        return call

    checked.__name__ = factory.__name__
    return checked


def _agrees(result: Any, replacement: Callable[..., Any], original: Callable[..., Any], inputs: Any) -> bool:
    """Compared without a trace in the graph. Where the run computes only shapes, both get numbers of our own."""
    pause = core.Paused()
    try:
        plain, got = pytree.tree_map(_plain, (inputs, result))
        unknown = [leaf for leaf in pytree.tree_leaves((plain, got)) if _is_meta(leaf)]
        if unknown:
            if not all(leaf.is_floating_point() for leaf in unknown):
                return True  # numbers that mean something to a function cannot be made up
            plain = pytree.tree_map(_drawn, plain)
            args, kwargs = pytree.tree_map(lambda leaf: leaf, plain)
            got = replacement(*args, **kwargs)
        args, kwargs = plain
        want = original(*args, **kwargs)
        return all(map(_equal, pytree.tree_leaves(got), pytree.tree_leaves(want)))
    finally:
        del pause


def _plain(leaf: Any) -> Any:
    """What a traced tensor or a symbolic size is in this run."""
    if isinstance(leaf, torch.Tensor):
        return core.real_tensor(leaf)
    return core.sym_hint(leaf.node) if isinstance(leaf, torch.SymInt | torch.SymFloat | torch.SymBool) else leaf


def _is_meta(leaf: Any) -> bool:
    return isinstance(leaf, torch.Tensor) and leaf.is_meta


def _drawn(leaf: Any) -> Any:
    if not _is_meta(leaf):
        return leaf
    draws = torch.Generator().manual_seed(leaf.numel())
    return torch.rand(leaf.shape, generator=draws).to(leaf.dtype)


def _equal(got: Any, want: Any) -> bool:
    if not (isinstance(got, torch.Tensor) and isinstance(want, torch.Tensor)):
        return bool(got == want)
    if got.shape != want.shape or not want.is_floating_point():
        return got.shape == want.shape and torch.equal(got, want.to(got.dtype))
    # Sums in another order: half of the digits have to be right.
    tolerance = torch.finfo(want.dtype).eps ** 0.5
    return torch.allclose(got.double(), want.double(), rtol=tolerance, atol=tolerance * float(want.abs().amax()))
