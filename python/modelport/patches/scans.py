"""Recurrences over a sequence, computed in a fixed number of steps whatever its length.

A Python loop over time pins the length of the sequence. Where the step is associative, combining each position with the
one 1, 2, 4, ... before it gives the same: after k steps a position has seen the 2**k positions up to itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

_STEPS = 16  # of a sequence of symbolic length: it may be 2**16 long


def associative_scan(original: Callable[..., Any]) -> Callable[..., Any]:
    """For torch's operator of this name: the recorder cannot look into a higher-order operator."""

    def associative_scan(combine_fn: Callable[..., Any], xs: Any, dim: int, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(xs, tuple) or args or kwargs.get("reverse"):
            return original(combine_fn, xs, dim, *args, **kwargs)
        length = xs[0].shape[dim]
        for step in range(_steps(length)):
            apart = 2**step
            both = length - min(apart, length) if isinstance(length, int) else length - torch.sym_min(apart, length)
            left = tuple(x.narrow(dim, 0, both) for x in xs)
            right = tuple(x.narrow(dim, length - both, both) for x in xs)
            begin = tuple(x.narrow(dim, 0, length - both) for x in xs)
            joined = combine_fn(left, right)
            xs = tuple(torch.cat([b, j], dim) for b, j in zip(begin, joined, strict=True))
        return xs

    return associative_scan


def _steps(length: Any) -> int:
    if isinstance(length, int):
        return max(length - 1, 0).bit_length()
    if length > 2**_STEPS:
        raise ValueError(f"a sequence of {length} is longer than {2**_STEPS}")
    return _STEPS


def not_exporting(_original: Any) -> Callable[[], bool]:
    """Models avoid the scan for the sake of other exporters; ours has it."""
    return lambda: False


def linear_scan(_original: Any) -> Callable[..., Any]:
    """For `_rnn_scan` of a linear recurrence: state = gate * state + input."""

    def _rnn_scan(
        self: Any,
        hidden_states: torch.Tensor,
        recurrent_gate: torch.Tensor,
        reset: torch.Tensor,
        recurrent_states: torch.Tensor | None,
        acc_dtype: torch.dtype = torch.float32,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        gate = (recurrent_gate * ~reset).type(acc_dtype)
        inputs = hidden_states.type(acc_dtype)
        if recurrent_states is not None:
            first = inputs[:, :1] + gate[:, :1] * recurrent_states[:, None].type(acc_dtype)
            inputs = torch.cat([first, inputs[:, 1:]], dim=1)
        _, states = associative_scan(_original)(_follow, (gate, inputs), 1)
        return states.type(hidden_states.dtype), states[:, -1]

    return _rnn_scan


def _follow(left: Any, right: Any) -> Any:
    return left[0] * right[0], right[0] * left[1] + right[1]
