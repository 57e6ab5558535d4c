"""Rows that encoders of pictures or sound make for the language model, and the places where a model has them.

A place is a part of what a method such as `get_image_features` returns, or what is put among the embeddings by an
operator such as masked_scatter, counted from the first one of a forward pass."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from transformers.utils import ModelOutput

Path = tuple[str | int, ...]


@dataclasses.dataclass
class InResult:
    """In what a producer returns. There may be a list with a tensor an image; `flat` makes rows of all of them."""

    producer: int
    path: Path
    flat: bool = True

    def taken(self, result: Any) -> torch.Tensor:
        found = at(result, self.path)
        if isinstance(found, torch.Tensor):
            return rows_of(found) if self.flat else found
        return rows_of(torch.cat(found))  # the list as it is: a capture keeps it in one piece

    def put(self, result: Any, value: torch.Tensor) -> Any:
        """The result with other features: a list of them has one item."""
        found = at(result, self.path)
        return _with(result, self.path, value if isinstance(found, torch.Tensor) else type(found)([value]))


@dataclasses.dataclass
class InMerge:
    """What the merge with this number puts among the embeddings."""

    number: int
    flat = True  # it is rows already


@dataclasses.dataclass
class Features:
    name: str
    modality: str
    place: InResult | InMerge


def rows_of(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.reshape(-1, tensor.shape[-1])


# Operators that merge, and the place of what they merge among their arguments.
_SOURCES = {"masked_scatter": 2, "masked_scatter_": 2, "__setitem__": 2, "index_put": 2, "index_put_": 2}


class Merges(TorchFunctionMode):
    """While active, calls `each` with the number and the source of every merge; what it returns is merged."""

    def __init__(self, each: Callable[[int, torch.Tensor], torch.Tensor]):
        super().__init__()
        self.each, self.count = each, 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        place = _SOURCES.get(getattr(func, "__name__", ""))
        if place is not None and len(args) > place and _is_merge(args[0], args[place]):
            source = self.each(self.count, args[place])
            self.count += 1
            args = (*args[:place], source, *args[place + 1 :])
        return func(*args, **(kwargs or {}))


def _is_merge(target: torch.Tensor, source: Any) -> bool:
    """Rows into embeddings; a mask that is filled or a number that is set is none."""
    return (
        isinstance(source, torch.Tensor)
        and target.dim() in (2, 3)
        and source.dim() >= 2
        and source.is_floating_point()
        and source.shape[-1] == target.shape[-1]
    )


def candidates(result: Any, path: Path = ()) -> Iterator[Path]:
    """Places of a result that may hold features: tensors, and lists with a tensor an image."""
    if isinstance(result, torch.Tensor):
        if result.is_floating_point() and result.dim() >= 2:
            yield path
    elif isinstance(result, list | tuple) and _is_one_tensor_an_image(result):
        yield path
    else:
        for key, value in _items(result):
            yield from candidates(value, (*path, key))


def _is_one_tensor_an_image(values: list[Any] | tuple[Any, ...]) -> bool:
    return bool(values) and all(
        isinstance(v, torch.Tensor) and v.is_floating_point() and v.dim() and v.shape[-1] == values[0].shape[-1]
        for v in values
    )


def perturbed(result: Any, path: Path) -> Any:
    found = at(result, path)
    if isinstance(found, torch.Tensor):
        return _with(result, path, found + 1)
    return _with(result, path, type(found)([item + 1 for item in found]))


def _items(value: Any) -> list[tuple[Any, Any]]:
    if isinstance(value, Mapping):  # a ModelOutput may have attributes that are no fields
        own = [(k, v) for k, v in vars(value).items() if k not in value] if isinstance(value, ModelOutput) else []
        return [*value.items(), *own]
    return list(enumerate(value)) if isinstance(value, list | tuple) else []


def at(value: Any, path: Path) -> Any:
    for key in path:
        value = getattr(value, str(key)) if isinstance(value, ModelOutput) else value[key]  # type: ignore[index]
    return value


def _with(value: Any, path: Path, leaf: Any) -> Any:
    """A copy with another leaf; the rest is shared."""
    if not path:
        return leaf
    key, inner = path[0], _with(at(value, path[:1]), path[1:], leaf)
    if isinstance(value, tuple):
        return tuple(inner if i == key else v for i, v in enumerate(value))
    changed = copy.copy(value)
    if isinstance(value, ModelOutput):
        setattr(changed, str(key), inner)
    else:
        changed[key] = inner
    return changed
