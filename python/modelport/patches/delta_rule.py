"""Linear attention by the gated delta rule as one operator: a kernel of ExecuTorch or of onnxruntime, or a loop.

Models compute it in one of two functions with the parameters of the flash-linear-attention library: token by token, or
in chunks. The operator does for any number of tokens what both do, so that a program reads a prompt at once."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

from ..symbolic.replaced_attributes import original, replaced_here

GATED_DELTA_RULE = (
    "(Tensor query, Tensor key, Tensor value, Tensor decay, Tensor beta, Tensor initial_state) -> (Tensor, Tensor)"
)
_PARAMETERS = {"query", "key", "value", "g", "beta", "initial_state", "output_final_state", "use_qk_l2norm_in_kernel"}


def gated_delta_rule(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    decay: torch.Tensor,
    beta: torch.Tensor,
    initial_state: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """What the kernel computes: [batch, heads, tokens, width]; the state is [batch, heads, width, width of values]. It
    decays as a whole, or each of its rows by itself (KDA) where the decay has a width, too."""
    state, rows = initial_state.clone(), []
    decay = decay[..., None] if decay.dim() == 3 else decay
    for token in range(query.shape[2]):
        state = state * decay[:, :, token, :, None]
        known = (state * key[:, :, token, :, None]).sum(-2)
        change = (value[:, :, token] - known) * beta[:, :, token, None]
        state = state + key[:, :, token, :, None] * change[:, :, None]
        rows.append((state * query[:, :, token, :, None]).sum(-2))
    return torch.stack(rows, dim=2), state


Places = list[tuple[Any, str]]  # modules of Python, and names in them


def functions_of_the_rule(model: Any) -> Places:
    """Where the code of the model has functions that compute it."""
    modules = sorted({type(part).__module__ for part in model.modules()})
    return [
        (module, name)
        for module in filter(None, map(sys.modules.get, modules))
        for name, value in list(vars(module).items())  # captures in other threads put names there
        if inspect.isfunction(value) and _computes_the_rule(original(module, name))
    ]


@contextmanager
def operator_at(places: Places, operator: str = "gated_delta_rule") -> Iterator[None]:
    """While it lasts, the operator stands there: `linear_attention` is the one that is onnxruntime's own."""

    def by_operator(*args: Any, **settings: Any) -> tuple[torch.Tensor, torch.Tensor | None]:
        return _by(getattr(torch.ops.modelport, operator), *args, **settings)

    with ExitStack() as stack:
        for module, name in places:
            stack.enter_context(replaced_here(module, name, lambda _: by_operator))
        yield


@functools.cache
def _computes_the_rule(function: Any) -> bool:
    """Whether it takes what the rule needs, and gives what the operator gives."""
    try:
        if not set(inspect.signature(function).parameters) >= _PARAMETERS:
            return False
    except (TypeError, ValueError):  # not every callable has a signature
        return False
    drawn = torch.Generator().manual_seed(0)
    query, key, value = (torch.randn(1, 3, 2, width, generator=drawn) for width in (4, 4, 5))
    beta, state = torch.rand(1, 3, 2, generator=drawn), torch.randn(1, 2, 4, 5, generator=drawn)
    settings = {"beta": beta, "output_final_state": True, "use_qk_l2norm_in_kernel": True}

    def agrees(*decay: int) -> bool:
        settings["g"] = -torch.rand(decay, generator=drawn)
        try:
            with torch.no_grad():
                found = function(query, key, value, initial_state=state.clone(), **settings)
                wanted = _by(gated_delta_rule, query, key, value, initial_state=state.clone(), **settings)
            return all(torch.allclose(a, b, atol=1e-4, rtol=1e-4) for a, b in zip(found, wanted, strict=True))
        except Exception:  # it may want anything else
            return False

    return agrees(1, 3, 2) or agrees(1, 3, 2, 4)


def _by(
    rule: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    g: torch.Tensor,
    beta: torch.Tensor,
    initial_state: torch.Tensor | None = None,
    output_final_state: bool = False,
    use_qk_l2norm_in_kernel: bool = False,
    **_more: Any,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    dtype = query.dtype
    # Not made contiguous, which would record something for several tokens and nothing for one.
    query, key, value, decay, beta = (x.transpose(1, 2).float() for x in (query, key, value, g, beta))
    if use_qk_l2norm_in_kernel:
        query, key = (x * torch.rsqrt((x * x).sum(-1, keepdim=True) + 1e-6) for x in (query, key))
    query = query * query.shape[-1] ** -0.5
    if initial_state is None:
        initial_state = query.new_zeros(query.shape[0], query.shape[1], key.shape[-1], value.shape[-1])
    found, state = rule(query, key, value, decay.exp(), beta, initial_state.float())
    return found.transpose(1, 2).to(dtype), state if output_final_state else None
