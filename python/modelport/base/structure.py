"""Nested inputs and outputs (dicts, tuples, ModelOutput, every Cache class) as flat lists of named leaves."""

from __future__ import annotations

import dataclasses
import enum
import re
from collections.abc import Mapping
from typing import Any

import torch
from torch.utils import _pytree as pytree

from .item_lists import ItemLists
from .object_nodes import register_object

_SYMBOLS = (torch.SymInt, torch.SymFloat, torch.SymBool)
_CACHES = "transformers.cache_utils"


@dataclasses.dataclass
class Flat:
    """A flattened structure: leaves in pytree order, a dotted name for each, and how to put it back together."""

    names: list[str]
    leaves: list[Any]
    spec: pytree.TreeSpec
    # Of outputs: which are inputs, in which the model may have written, by their names.
    given: dict[str, str] = dataclasses.field(default_factory=dict)
    lists: ItemLists | None = None  # of outputs: where the model gives lists with a tensor for each item

    def tensors(self) -> dict[str, torch.Tensor]:
        return {n: v for n, v in zip(self.names, self.leaves, strict=True) if isinstance(v, torch.Tensor)}


def flatten(value: Any) -> Flat:
    """Flattens what the model takes or gives; classes that torch's pytree does not know yet are made known to it."""
    _register_containers(value, set())
    pairs, spec = pytree.tree_flatten_with_path(value, is_leaf=_is_plain_object)
    attribute_paths = _paths_of_tensors(value)
    names: list[str] = []
    taken: set[str] = set()
    for path, leaf in pairs:
        name = attribute_paths.get(id(leaf)) if isinstance(leaf, torch.Tensor) else None
        name = readable(name or _dotted(path) or "output")
        if name in taken:
            name = next(f"{name}_{i}" for i in range(1, len(pairs) + 1) if f"{name}_{i}" not in taken)
        taken.add(name)
        names.append(name)
    return Flat(names, [leaf for _, leaf in pairs], spec)


def unflatten(leaves: list[Any], spec: pytree.TreeSpec) -> Any:
    return pytree.tree_unflatten(leaves, spec)


def plain_context(value: Any) -> Any:
    """A pytree context without symbols: sizes that a cache keeps as numbers are those of the example run."""
    if isinstance(value, _SYMBOLS):
        return value.node.guard_int("", 0) if isinstance(value, torch.SymInt) else bool(value)
    if isinstance(value, dict):
        return {k: plain_context(v) for k, v in value.items()}
    if isinstance(value, list | tuple) and type(value) in (list, tuple):
        return type(value)(plain_context(v) for v in value)
    return value


def _dotted(path: tuple[Any, ...]) -> str:
    parts = []
    for key in path:
        for field in ("key", "idx", "name"):
            if hasattr(key, field):
                parts.append(str(getattr(key, field)))
                break
        else:
            parts.append(str(key).strip("[].'\""))
    return ".".join(parts)


def readable(path: str) -> str:
    """`past_key_values.layers.0.keys` is what people call `past_key_values.0.key`."""
    path = re.sub(r"\.layers\.(\d+)\.", r".\1.", path)
    return re.sub(r"\.(key|value)s$", r".\1", path)


def _paths_of_tensors(value: Any) -> dict[int, str]:
    """Dotted attribute paths of tensors inside objects that are not plain containers, by identity of the tensor."""
    paths: dict[int, str] = {}
    seen: set[int] = set()

    def walk(obj: Any, prefix: str, inside_object: bool) -> None:
        if isinstance(obj, torch.Tensor):
            if inside_object:
                paths.setdefault(id(obj), prefix)
            return
        if isinstance(obj, (type, enum.Enum, str, bytes, int, float, *_SYMBOLS)) or obj is None or id(obj) in seen:
            return
        seen.add(id(obj))
        if isinstance(obj, Mapping):
            items: Any = obj.items()
        elif isinstance(obj, list | tuple | set):
            items = enumerate(obj)
        elif hasattr(obj, "__dict__"):
            items, inside_object = vars(obj).items(), True
        else:
            return
        for key, item in items:
            walk(item, f"{prefix}.{key}" if prefix else str(key), inside_object)

    walk(value, "", False)
    return paths


def _register_containers(value: Any, seen: set[int]) -> None:
    if id(value) in seen or value is None or isinstance(value, (torch.Tensor, str, bytes, int, float, type, *_SYMBOLS)):
        return
    seen.add(id(value))
    if isinstance(value, Mapping):
        for item in value.values():
            _register_containers(item, seen)
    elif isinstance(value, list | tuple):
        for item in value:
            _register_containers(item, seen)
    elif type(value) not in pytree.SUPPORTED_NODES and _is_container(value):
        register_object(type(value))
        _made_known.add(type(value))


_made_known: set[type] = set()  # classes that pytree knows from us


def _is_plain_object(value: Any) -> bool:
    """Without tensors an object is a leaf, also where another of its class had some in an earlier call."""
    return type(value) in _made_known and not _is_container(value)


def _is_container(value: Any) -> bool:
    """A cache is one while it is empty, too: the model fills it."""
    cls = type(value)
    is_cache = cls.__name__.endswith("Cache") or any(base.__module__ == _CACHES for base in cls.__mro__)
    return (is_cache and hasattr(value, "__dict__")) or _holds_tensors(value)


def _holds_tensors(value: Any) -> bool:
    return hasattr(value, "__dict__") and not isinstance(value, torch.nn.Module) and bool(_paths_of_tensors(value))


def plain_spec(spec: pytree.TreeSpec) -> pytree.TreeSpec:
    """The structure without symbols in it, so that it can be kept and written to a file."""
    children = [plain_spec(child) for child in spec.children()]
    return pytree.TreeSpec(spec.type, plain_context(spec.context), children)
