"""Results under their names."""

from __future__ import annotations

import inspect
import typing
from collections import OrderedDict
from types import UnionType
from typing import Any


class Outputs(OrderedDict[str, Any]):
    """Named tensors: `out.logits`, `out["logits"]`, `out[0]`, `(logits,) = out.to_tuple()`."""

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getitem__(name)
        except KeyError:
            raise AttributeError(f"there is no output {name!r}; there are: {', '.join(self)}") from None

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(key) if isinstance(key, str) else self.to_tuple()[key]

    def to_tuple(self) -> tuple[Any, ...]:
        return tuple(self.values())


def output_class(forward: Any, fallback: Any) -> Any:
    """The ModelOutput that a forward says it returns."""
    from transformers.utils import ModelOutput

    try:
        annotation = typing.get_type_hints(inspect.unwrap(forward)).get("return")
    except (NameError, TypeError, AttributeError):  # annotations that cannot be resolved say nothing
        return fallback
    is_union = typing.get_origin(annotation) in (typing.Union, UnionType)
    for chosen in typing.get_args(annotation) if is_union else (annotation,):
        if isinstance(chosen, type) and issubclass(chosen, ModelOutput):
            return chosen
    return fallback


def fields_of(cls: Any) -> list[str]:
    return list(getattr(cls, "__dataclass_fields__", ()))
