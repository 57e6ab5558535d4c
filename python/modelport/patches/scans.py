"""Recurrences over a sequence, whatever its length.

A Python loop over time pins the length of the sequence. Linear recurrences are an operator of ours. Where another step
is associative, combining each position with the one 1, 2, 4, ... before it gives the same as the loop: after k steps a
position has seen the 2**k positions up to itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ..base import core

_STEPS = 16  # of a sequence of symbolic length: it may be 2**16 long


def associative_scan(original: Callable[..., Any]) -> Callable[..., Any]:
    """For torch's operator of this name: the recorder cannot look into a higher-order operator."""

    def associative_scan(combine_fn: Callable[..., Any], xs: Any, dim: int, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(xs, tuple) or args or kwargs.get("reverse"):
            return original(combine_fn, xs, dim, *args, **kwargs)
        if len(xs) == 2 and _is_linear(combine_fn):
            return torch.cumprod(xs[0], dim), linear_recurrence(*xs, None, dim)
        return _in_doubling_steps(combine_fn, xs, dim)

    return associative_scan


def linear_recurrence(decay: torch.Tensor, x: torch.Tensor, state: torch.Tensor | None, dim: int) -> torch.Tensor:
    """state = decay * state + x: one operator in the graph."""
    dtype = torch.promote_types(decay.dtype, x.dtype)
    state = None if state is None else state.to(dtype)
    return torch.ops.modelport.linear_recurrence(decay.to(dtype), x.to(dtype), state, dim)


def _is_linear(combine_fn: Callable[..., Any]) -> bool:
    """Whether it joins steps of a linear recurrence, as numbers tell."""
    pause = core.Paused()
    try:
        draws = torch.Generator().manual_seed(0)
        left, right = torch.rand(2, 2, 16, generator=draws, dtype=torch.float64).unbind()
        decay, x = combine_fn(tuple(left), tuple(right))
        return torch.equal(decay, left[0] * right[0]) and torch.allclose(x, right[0] * left[1] + right[1])
    finally:
        del pause


def _in_doubling_steps(combine_fn: Callable[..., Any], xs: Any, dim: int) -> Any:
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
        states = linear_recurrence(gate, inputs, recurrent_states, 1)
        return states.type(hidden_states.dtype), states[:, -1]

    return _rnn_scan
