"""Models and inputs made ready for export, and tensors found in nested structures."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from typing import Any

import torch

from ..base.errors import problem
from ..base.structure import flatten, unflatten
from ..models.locks import only_user
from .preparers import precompute_export_inputs

_LABELS = ("labels", "future_values")
OUTPUT_FLAGS = ("use_cache", "output_attentions", "output_hidden_states", "return_dict", "return_loss")
_NOT_CONTAINERS = (type, enum.Enum, torch.SymInt, torch.SymFloat, torch.SymBool)


def prepare_for_export(
    model: torch.nn.Module, inputs: MutableMapping[str, Any]
) -> tuple[torch.nn.Module, MutableMapping[str, Any], dict[str, Any]]:
    """Takes output flags out of the inputs (they are returned, to be set on the config), refuses labels, runs the
    preparers of inputs, and casts the inputs to the model's dtype and device."""
    for label in _LABELS:
        if inputs.pop(label, None) is not None:
            raise problem("E0301", f"the inputs have '{label}': a loss cannot be exported", f"inputs.pop('{label}')")
    if inputs.get("return_loss") or getattr(getattr(model, "config", None), "return_loss", False):
        raise problem("E0301", "return_loss is set: a loss cannot be exported", "model.config.return_loss = False")
    flags = {name: inputs.pop(name) for name in OUTPUT_FLAGS if name in inputs}
    precompute_export_inputs(model, inputs)
    dtype, device = module_dtype(model), module_device(model)
    if dtype is not None and device is not None:
        inputs = cast_leaf_tensors(inputs, dtype=dtype, device=device)
    return model, inputs, flags


@contextmanager
def config_flags(model: torch.nn.Module, flags: Mapping[str, Any]) -> Iterator[None]:
    """Sets output flags on the model's config, and puts back what was there. Meanwhile no other thread captures it."""
    config = getattr(model, "config", None)
    with only_user(model):
        known = {k: v for k, v in flags.items() if v is not None and config is not None and hasattr(config, k)}
        before = {name: getattr(config, name) for name in known}
        for name, value in known.items():
            setattr(config, name, value)
        try:
            yield
        finally:
            for name, value in before.items():
                setattr(config, name, value)


def get_leaf_tensors(obj: Any) -> dict[str, torch.Tensor]:
    """Every tensor of a nested structure by its dotted path."""
    return dict(_walk(obj, ""))


def _walk(obj: Any, prefix: str) -> Iterator[tuple[str, torch.Tensor]]:
    if isinstance(obj, torch.Tensor):
        yield prefix or "output", obj
        return
    if isinstance(obj, _NOT_CONTAINERS):
        return
    if isinstance(obj, Mapping):
        items: Any = obj.items()
    elif isinstance(obj, list | tuple | set):
        items = enumerate(obj)
    elif hasattr(obj, "__dict__"):
        items = vars(obj).items()
    else:
        return
    for key, value in items:
        yield from _walk(value, f"{prefix}.{key}" if prefix else str(key))


def cast_leaf_tensors(obj: Any, dtype: torch.dtype, device: torch.device) -> Any:
    """Floating tensors in the given dtype, all on the given device; mappings and objects are changed in place."""
    if isinstance(obj, torch.Tensor):
        return obj.to(dtype=dtype, device=device) if obj.is_floating_point() else obj.to(device=device)
    if isinstance(obj, _NOT_CONTAINERS):
        return obj
    if isinstance(obj, list | tuple | set):
        cast = [cast_leaf_tensors(item, dtype, device) for item in obj]
        return type(obj)(*cast) if hasattr(obj, "_fields") else type(obj)(cast)
    if isinstance(obj, MutableMapping):
        for key in list(obj):
            obj[key] = cast_leaf_tensors(obj[key], dtype, device)
    elif hasattr(obj, "__dict__"):
        for key, value in vars(obj).items():
            setattr(obj, key, cast_leaf_tensors(value, dtype, device))
    return obj


def in_dtype(inputs: Mapping[str, Any], dtype: torch.dtype) -> dict[str, Any]:
    """The inputs with floating tensors of this dtype; the caller's own stay as they are."""
    flat = flatten(dict(inputs))
    cast = [x.to(dtype) if isinstance(x, torch.Tensor) and x.is_floating_point() else x for x in flat.leaves]
    return unflatten(cast, flat.spec)


def refuse_other_type(model: torch.nn.Module, dtype: torch.dtype | None) -> None:
    """A model in memory that generates is exported in its own type."""
    own = module_dtype(model)
    if dtype is None or own is None or own == dtype:
        return
    raise problem(
        "E0306",
        f"{type(model).__name__} is in {own}, and a model that generates is exported in the type that it has in memory",
        f"model.to({dtype})",
        "name its checkpoint folder in its place, of which any type is made",
    )


def module_device(model: torch.nn.Module) -> torch.device | None:
    return getattr(model, "device", None) or next((p.device for p in model.parameters()), None)


def module_dtype(model: torch.nn.Module) -> torch.dtype | None:
    return getattr(model, "dtype", None) or next((p.dtype for p in model.parameters()), None)
