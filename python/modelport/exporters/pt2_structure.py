"""Structures that a `.pt2` names, built from a closed list of types.

torch's own loader imports and calls what the text of the file says. Here a file only chooses among containers of
Python, named tuples that this process made known to torch, and outputs and caches of transformers modules that are
imported already. Nothing is imported for a file, and no class of it but these is made."""

from __future__ import annotations

import json
import sys
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils import _pytree as pytree

from ..base.object_nodes import register_object, with_numbers
from ..base.printable import one_line
from ..base.structure import flatten

_LONGEST = 200  # characters of a message that a file may fill

Written = tuple[str, str, list[Any]] | None  # type, context as JSON, children; None is a leaf


class UnknownStructure(Exception):
    """The structure has a part that is not on the list; the text says which."""

    def __init__(self, what: str):
        super().__init__(one_line(what[:_LONGEST]))


def build(written: Written) -> Any:
    """The structure with an empty tensor for each leaf, as torch would flatten it again."""
    made: list[torch.Tensor] = []

    def leaf() -> torch.Tensor:
        made.append(torch.empty(0))
        return made[-1]

    value = _build(written, leaf)
    leaves = flatten(value).leaves
    if len(leaves) != len(made) or any(a is not b for a, b in zip(leaves, made, strict=True)):
        raise UnknownStructure("parts in another order than their type has")
    return value


def _build(written: Written, leaf: Callable[[], torch.Tensor]) -> Any:
    if written is None:
        return leaf()
    name, context_text, children = written
    values = [_build(child, leaf) for child in children]
    context = json.loads(context_text)
    if name in _CONTAINERS:
        return _CONTAINERS[name](context, values)
    module, colon, qualified = name.partition(":")
    if colon:
        return _cache(name, _named_class(module, qualified, _is_cache), context, values)
    module, _, qualified = name.rpartition(".")
    fields = _keys(context, values)
    cls: Any = _named_class(module, qualified, _is_output)
    if not set(fields) <= set(cls.__dataclass_fields__):
        raise UnknownStructure(f"a {qualified} with other fields than it has")
    return cls(**dict(zip(fields, values, strict=True)))


# --- containers -------------------------------------------------------------------------------------------------------


def _keys(context: Any, values: list[Any]) -> list[Any]:
    plain = isinstance(context, list) and all(isinstance(key, str | int | float | bool | None) for key in context)
    if not plain or len(set(context)) != len(values) or len(context) != len(values):
        raise UnknownStructure("a dictionary whose keys are not those of its values")
    return context


def _named_tuple(context: Any, values: list[Any]) -> Any:
    """Of a class that somebody in this process registered with torch."""
    cls = pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE.get(context) if isinstance(context, str) else None
    if cls is None or not pytree.is_namedtuple_class(cls) or len(cls._fields) != len(values):
        raise UnknownStructure(f"the named tuple {context!r}")
    return tuple.__new__(cls, values)


def _deque(context: Any, values: list[Any]) -> Any:
    longest = context.get("maxlen") if isinstance(context, dict) else context
    if longest is not None and not (isinstance(longest, int) and longest >= len(values)):
        raise UnknownStructure("a deque that is longer than it may be")
    return deque(values, maxlen=longest)


_CONTAINERS: dict[str, Callable[[Any, list[Any]], Any]] = {
    "builtins.tuple": lambda _, values: tuple(values),
    "builtins.list": lambda _, values: values,
    "builtins.dict": lambda context, values: dict(zip(_keys(context, values), values, strict=True)),
    "collections.OrderedDict": lambda context, values: OrderedDict(zip(_keys(context, values), values, strict=True)),
    "collections.namedtuple": _named_tuple,
    "collections.deque": _deque,
}


# --- classes of transformers ------------------------------------------------------------------------------------------


def _named_class(module: str, name: str, admitted: Callable[[type], bool]) -> type:
    """A class that an imported module of transformers defines; looking for it imports nothing."""
    if module.partition(".")[0] == "transformers":
        # These two have what most models take and give; which are imported here is not the file's choice.
        import transformers.cache_utils
        import transformers.modeling_outputs  # noqa: F401
    home = sys.modules.get(module) if module.startswith("transformers.") else None
    found = vars(home).get(name) if home is not None else None
    if not isinstance(found, type) or found.__module__ != module or not admitted(found):
        raise UnknownStructure(f"the type {module}.{name}")
    return found


def _is_output(cls: type) -> bool:
    from transformers.utils import ModelOutput

    return issubclass(cls, ModelOutput) and hasattr(cls, "__dataclass_fields__")


def _is_cache(cls: type) -> bool:
    """Caches and their layers; some models have caches of their own, which only the name tells."""
    from transformers.cache_utils import Cache, CacheLayerMixin, LinearAttentionCacheLayerMixin

    own = cls.__module__.startswith("transformers.models.") and cls.__name__.endswith("Cache")
    return own or issubclass(cls, Cache | CacheLayerMixin | LinearAttentionCacheLayerMixin)


def _cache(name: str, cls: type, context: Any, values: list[Any]) -> Any:
    if not isinstance(context, dict) or context.get("_t") != "obj" or context.get("p") != name:
        raise UnknownStructure(f"a {cls.__name__} that is described as something else")
    made = _Described(values).value(context)
    register_object(cls)
    return made


class _Described:
    """Values as transformers describes those of a cache: JSON with a tag (`_t`) for what JSON does not have."""

    def __init__(self, tensors: list[Any]):
        self.tensors = tensors

    def value(self, context: Any) -> Any:
        if isinstance(context, list):
            return [self.value(item) for item in context]
        if not isinstance(context, dict):
            return context
        if "_t" not in context:
            return dict(self._items(context))
        make = _TAGS.get(context["_t"]) if isinstance(context["_t"], str) else None
        if make is None:
            raise UnknownStructure(f"a value of the kind {context['_t']!r} in a cache")
        try:
            return make(self, context)
        except (KeyError, IndexError, TypeError, ValueError, RuntimeError, AttributeError) as error:
            raise UnknownStructure(f"a value of the kind {context['_t']!r} in a cache that is damaged") from error

    def _items(self, context: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
        for key, value in with_numbers(context.items()):
            yield key, self.value(value)

    def tensor(self, context: dict[str, Any]) -> Any:
        index = context["i"]
        if not isinstance(index, int) or not 0 <= index < len(self.tensors):
            raise UnknownStructure("a cache with a tensor that is not there")
        return self.tensors[index]

    def of_torch(self, context: dict[str, Any]) -> Any:
        found = vars(torch).get(context["n"])
        if not isinstance(found, torch.dtype | torch.layout):
            raise UnknownStructure("a cache of a type of numbers that torch does not have")
        return found

    def device(self, context: dict[str, Any]) -> Any:
        return torch.device(str(context["s"]))

    def size(self, context: dict[str, Any]) -> Any:
        return torch.Size([int(size) for size in context["v"]])

    def cls(self, context: dict[str, Any]) -> Any:
        module, _, name = context["p"].partition(":")
        return _named_class(module, name, _is_cache)

    def sequence(self, context: dict[str, Any]) -> Any:
        kind = _SEQUENCES.get(context["p"])
        if kind is None:
            raise UnknownStructure(f"the type {context['p']}")
        return kind(self.value(context["v"]))

    def mapping(self, context: dict[str, Any]) -> Any:
        if context["p"] != "collections:OrderedDict":
            raise UnknownStructure(f"the type {context['p']}")
        return OrderedDict(self._items(context["v"]))

    def instance(self, context: dict[str, Any]) -> Any:
        """The object with its attributes as they were: its class runs no code for that."""
        made = object.__new__(self.cls(context))
        for name, value in context["s"].items():
            if not name.isidentifier() or name.startswith("__"):
                raise UnknownStructure(f"a cache with the attribute {name!r}")
            vars(made)[name] = self.value(value)
        return made


_SEQUENCES: dict[str, Callable[[list[Any]], Any]] = {
    "builtins:tuple": tuple,
    "builtins:list": list,
    "builtins:set": set,
    "builtins:frozenset": frozenset,
}

_TAGS: dict[str, Callable[[_Described, dict[str, Any]], Any]] = {
    "tensor": _Described.tensor,
    "sym": _Described.tensor,
    "dtype": _Described.of_torch,
    "layout": _Described.of_torch,
    "device": _Described.device,
    "size": _Described.size,
    "type": _Described.cls,
    "seq": _Described.sequence,
    "map": _Described.mapping,
    "obj": _Described.instance,
}
