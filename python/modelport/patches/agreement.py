"""A replacement that was written for one model, in others that have a method like it: kept where values agree."""

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

        def call(*args: Any, **kwargs: Any) -> Any:
            if not core.is_recording():
                return original(*args, **kwargs)
            result = replacement(*args, **kwargs)
            return result if _agrees(result, original, args, kwargs) else original(*args, **kwargs)

        return call

    return checked


def _agrees(result: Any, original: Callable[..., Any], args: Any, kwargs: Any) -> bool:
    """Compared without a trace in the graph; where only shapes are computed there is nothing to compare."""
    pause = core.Paused()
    try:
        plain_args, plain_kwargs, got = pytree.tree_map_only(torch.Tensor, core.real_tensor, (args, kwargs, result))
        tensors = [x for x in pytree.tree_leaves((plain_args, plain_kwargs, got)) if isinstance(x, torch.Tensor)]
        if any(tensor.is_meta for tensor in tensors):
            return True
        want = pytree.tree_leaves(original(*plain_args, **plain_kwargs))
        return all(map(_equal, pytree.tree_leaves(got), want))
    finally:
        del pause


def _equal(got: Any, want: Any) -> bool:
    if isinstance(got, torch.Tensor) and isinstance(want, torch.Tensor):
        return got.shape == want.shape and torch.equal(got, want.to(got.dtype))
    return bool(got == want)
