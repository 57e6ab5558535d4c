"""Objects that hold tensors (caches and their layers) as nodes of torch's pytree.

Flattening gives the tensors and a description of the rest as JSON, with a tag `_t` where JSON has no such value: the
form in which transformers describes caches in `.pt2` archives, so that either side reads what the other wrote."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Iterable, Iterator
from types import MethodType
from typing import Any
from weakref import WeakValueDictionary

import torch
from torch.utils import _pytree as pytree

_JSON = (bool, int, float, str, type(None))
_CONSTANT = {torch.SymInt: "maybe_as_int", torch.SymFloat: "maybe_as_float", torch.SymBool: "maybe_as_bool"}
_classes: WeakValueDictionary[str, type] = WeakValueDictionary()  # by their paths, those inside functions too


def register_object(cls: type) -> None:
    """Makes a class known to pytree; nothing happens where somebody did so before."""
    if cls in pytree.SUPPORTED_NODES:
        return
    pytree.register_pytree_node(
        cls,
        _flatten,
        _unflatten,
        serialized_type_name=_path(cls),
        to_dumpable_context=json.dumps,
        from_dumpable_context=_read,
        flatten_with_keys_fn=_flatten_with_keys,
    )


def is_cache(value: Any) -> bool:
    """By its base class, or by its name: some models have caches of their own."""
    names = [base.__name__ for base in type(value).__mro__ if base.__module__ == "transformers.cache_utils"]
    return "Cache" in names or type(value).__name__.endswith("Cache")


def _flatten(value: Any) -> tuple[list[Any], Any]:
    leaves: list[Any] = []
    return leaves, _description(value, leaves)


def _flatten_with_keys(value: Any) -> tuple[list[tuple[Any, Any]], Any]:
    leaves, description = _flatten(value)
    return [(pytree.SequenceKey(index), leaf) for index, leaf in enumerate(leaves)], description


def _unflatten(leaves: Any, description: Any) -> Any:
    return _value(description, list(leaves))


def _read(text: str) -> Any:
    """A description from JSON, in which numbers that are keys (of a cache's layers) have become texts."""
    return json.loads(text, object_pairs_hook=lambda pairs: dict(with_numbers(pairs)))


def with_numbers(items: Iterable[tuple[str, Any]]) -> Iterator[tuple[Any, Any]]:
    items = list(items)
    numbers = bool(items) and all(key.isdecimal() and key.isascii() and len(key) < 9 for key, _ in items)
    for key, value in items:
        yield int(key) if numbers else key, value


def _path(cls: type) -> str:
    path = f"{cls.__module__}:{cls.__qualname__}"
    _classes[path] = cls
    return path


def _class_at(path: str) -> Any:
    if path in _classes:
        return _classes[path]
    module, _, names = path.partition(":")
    found: Any = importlib.import_module(module)
    for name in names.split("."):
        found = getattr(found, name)
    return found


def _description(value: Any, leaves: list[Any]) -> Any:
    """Plain values as they are; of what has a class only exactly that class is plain."""
    cls = type(value)
    if cls in _JSON:
        return value
    if cls is list:
        return [_description(item, leaves) for item in value]
    if cls is dict:
        return {key: _description(item, leaves) for key, item in value.items()}
    tag, fields = _tagged(value, leaves)
    return {"_t": tag, **fields} if tag else fields


def _tagged(value: Any, leaves: list[Any]) -> tuple[str, Any]:
    if isinstance(value, torch.Tensor):
        return "tensor", {"i": _add(leaves, value)}
    if type(value) in _CONSTANT:  # a symbol that has one value only is that number
        constant = getattr(value.node, _CONSTANT[type(value)])()
        return ("", constant) if constant is not None else ("sym", {"i": _add(leaves, value)})
    if isinstance(value, torch.Size):
        return "size", {"v": list(value)}
    if isinstance(value, torch.device):
        return "device", {"s": str(value)}
    if isinstance(value, torch.dtype | torch.layout):
        tag = "dtype" if isinstance(value, torch.dtype) else "layout"
        return tag, {"n": str(value).removeprefix("torch.")}
    if isinstance(value, type):
        return "type", {"p": _path(value)}
    path = _path(type(value))
    if isinstance(value, dict):
        return "map", {"p": path, "v": {key: _description(item, leaves) for key, item in value.items()}}
    if isinstance(value, tuple | list | set | frozenset):
        return "seq", {"p": path, "v": [_description(item, leaves) for item in value]}
    if hasattr(value, "__dict__") and not isinstance(value, MethodType):
        return "obj", {"p": path, "s": {key: _description(item, leaves) for key, item in vars(value).items()}}
    raise TypeError(f"a {type(value).__name__} inside a cache cannot be written down")


def _add(leaves: list[Any], leaf: Any) -> int:
    leaves.append(leaf)
    return len(leaves) - 1


def _value(described: Any, leaves: list[Any]) -> Any:
    if isinstance(described, list):
        return [_value(item, leaves) for item in described]
    if not isinstance(described, dict):
        return described
    if "_t" not in described:
        return {key: _value(item, leaves) for key, item in described.items()}
    return _READERS[described["_t"]](described, leaves)


def _sequence(described: dict[str, Any], leaves: list[Any]) -> Any:
    cls, items = _class_at(described["p"]), _value(described["v"], leaves)
    return cls(*items) if hasattr(cls, "_fields") else cls(items)  # named tuples take them one by one


def _instance(described: dict[str, Any], leaves: list[Any]) -> Any:
    """The object with its attributes as they were, without a call of its constructor."""
    cls = _class_at(described["p"])
    made = cls.__new__(cls)
    vars(made).update({key: _value(item, leaves) for key, item in described["s"].items()})
    return made


_READERS: dict[str, Callable[[dict[str, Any], list[Any]], Any]] = {
    "tensor": lambda described, leaves: leaves[described["i"]],
    "sym": lambda described, leaves: leaves[described["i"]],
    "size": lambda described, _: torch.Size(described["v"]),
    "device": lambda described, _: torch.device(described["s"]),
    "dtype": lambda described, _: getattr(torch, described["n"]),
    "layout": lambda described, _: getattr(torch, described["n"]),
    "type": lambda described, _: _class_at(described["p"]),
    "map": lambda described, leaves: _class_at(described["p"])(_value(described["v"], leaves)),
    "seq": _sequence,
    "obj": _instance,
}
