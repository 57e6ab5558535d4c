"""Dynamic shapes in the nesting of the arguments, as torch.export compares them with its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.utils import _pytree as pytree

from .calls import Signature
from .plan import Plan


def nested_shapes(plan: Plan) -> tuple[Any, ...] | dict[str, Any]:
    """A tuple where all calls were made by position, otherwise a dict by name."""
    arguments = plan.named(plan.arguments(plan.tensors(0)))
    places = {id(tensor): name for name, tensor in _tensors_of(plan, arguments)}
    shapes = {name: _spec(value, plan, places) for name, value in arguments.items()}
    signature = plan.calls.signature
    args, kwargs = signature.as_call(shapes, positional=plan.calls.positional)
    if plan.calls.positional and not kwargs and signature.rest not in shapes:
        return args
    return _with_groups(shapes, signature)


def _with_groups(shapes: dict[str, Any], signature: Signature) -> dict[str, Any]:
    """torch.export wants what `**kwargs` took in a dict of that name."""
    known = {*signature.names, signature.rest}
    more = {name: shapes.pop(name) for name in list(shapes) if name not in known}
    return {**shapes, signature.more: more} if more and signature.more is not None else shapes | more


def _tensors_of(plan: Plan, arguments: Mapping[str, Any]) -> list[tuple[str, torch.Tensor]]:
    from ..base.structure import flatten

    return list(flatten(dict(arguments)).tensors().items())


def _spec(value: Any, plan: Plan, places: Mapping[int, str]) -> Any:
    if isinstance(value, torch.Tensor):
        name = places[id(value)]
        axes = [axis for axis in range(value.dim()) if plan.layout.symbol(name, axis) is not None]
        return dict.fromkeys(axes, torch.export.Dim.DYNAMIC)
    if type(value) not in pytree.SUPPORTED_NODES:
        return None
    children, context = pytree.SUPPORTED_NODES[type(value)].flatten_fn(value)
    specs = [_spec(child, plan, places) for child in children]
    if type(value) is dict:
        return dict(zip(context, specs, strict=True))
    return tuple(specs) if type(value) is tuple else specs
