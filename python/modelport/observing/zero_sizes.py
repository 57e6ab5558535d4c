"""Sizes that may be 0, during a capture: what -1 in a shape stands for is said outright."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

_RESHAPES = (torch.Tensor.view, torch.Tensor.reshape, torch.reshape)


class ExplicitSizes(TorchFunctionMode):
    """With nothing in a tensor, -1 in a new shape could be any size, and no runtime takes it. While the model runs on
    an example with something in it, the size is known: it is written down in place of -1."""

    def __torch_function__(
        self, function: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if function in _RESHAPES and not kwargs and len(args) > 1 and not isinstance(args[1], torch.dtype):
            shape = args[1] if isinstance(args[1], list | tuple) else args[1:]
            args = (args[0], _without_guess(args[0].shape, shape))
        return function(*args, **(kwargs or {}))


def _without_guess(old: Sequence[Any], new: Sequence[Any]) -> list[Any]:
    """Sizes that both shapes have cancel each other; where plain numbers are left, they give the size."""
    new = list(new)
    guesses = [axis for axis, size in enumerate(new) if isinstance(size, int) and size == -1]
    if len(guesses) != 1 or all(isinstance(size, int) for size in old):
        return new
    left = list(old)
    divisor = []
    for size in (size for axis, size in enumerate(new) if axis != guesses[0]):
        # Compared as text: to ask whether sizes are equal would tie the graph to the answer.
        same = next((i for i, have in enumerate(left) if str(have) == str(size)), None)
        if same is None:
            divisor.append(size)
        else:
            del left[same]
    symbols = [size for size in left if not isinstance(size, int)]
    if any(not isinstance(size, int) for size in divisor):
        return new
    numbers, by = math.prod(size for size in left if isinstance(size, int)), math.prod(divisor)
    if by and numbers % by == 0:
        new[guesses[0]] = math.prod(symbols, start=numbers // by)
    return new
