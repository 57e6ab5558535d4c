"""One observed call: its arguments by name, the tensors in them, the numbers in them, and what came out."""

from __future__ import annotations

import copy
import dataclasses
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch.utils import _pytree as pytree

from ..base.object_nodes import is_cache, register_object
from ..base.structure import flatten, unflatten
from .tensor_copies import Kept, Store

Path = tuple[str | int, ...]
Scalar = int | float | bool | str
_SCALARS = (int, float, bool, str)


@dataclasses.dataclass(frozen=True)
class Signature:
    """What the observed method takes: names in order, defaults, and the names of `*args` and `**kwargs`."""

    names: tuple[str, ...]
    defaults: Mapping[str, Any]
    rest: str | None  # the name of *args
    rest_at: int
    more: str | None  # the name of **kwargs

    @classmethod
    def of(cls, method: Any) -> Signature:
        parameters = list(inspect.signature(method).parameters.values())
        rest = next((i for i, p in enumerate(parameters) if p.kind is p.VAR_POSITIONAL), None)
        more = next((p.name for p in parameters if p.kind is p.VAR_KEYWORD), None)
        named = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        return cls(
            names=tuple(p.name for p in named),
            defaults={p.name: p.default for p in named if p.default is not p.empty},
            rest=None if rest is None else parameters[rest].name,
            rest_at=len(named) if rest is None else rest,
            more=more,
        )

    def arguments(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The call's arguments by name, in the order of the signature; those of `*args` as one tuple."""
        by_position = dict(zip(self.names[: self.rest_at], args, strict=False))
        rest = args[self.rest_at :] if self.rest is not None else ()
        given = {**by_position, **kwargs}
        ordered = {name: given.pop(name) for name in self.names[: self.rest_at] if name in given}
        if self.rest is not None and rest:
            ordered[self.rest] = tuple(rest)
        ordered |= {name: given.pop(name) for name in self.names[self.rest_at :] if name in given}
        return ordered | given

    def as_call(self, arguments: Mapping[str, Any], *, positional: bool) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Back to (args, kwargs). What stands before `*args` has to be given by position."""
        given = dict(arguments)
        rest = given.pop(self.rest, ()) if self.rest is not None else ()
        args: list[Any] = []
        if rest or positional:
            for name in self.names[: self.rest_at]:
                if name not in given:
                    break
                args.append(given.pop(name))
        return (*args, *rest), given

    def is_default(self, name: str, value: Any) -> bool:
        if name not in self.defaults:
            return value is None
        default = self.defaults[name]
        return value is default or (isinstance(value, _SCALARS) and type(value) is type(default) and value == default)


class InputCandidate:
    """The inputs of one call. `arguments` holds what the method was given by name, with tensors of its own."""

    def __init__(self, arguments: Mapping[str, Any], positional: bool, keep: Callable[[str, torch.Tensor], Kept]):
        self.positional = positional
        self.cst_kwargs = {n: v for n, v in arguments.items() if isinstance(v, _SCALARS) or v is None}
        nested = {n: v for n, v in arguments.items() if n not in self.cst_kwargs}
        for value in nested.values():
            _make_known(value)
        flat = flatten(nested)
        places = {id(leaf): path for path, leaf in leaves_in(nested) if isinstance(leaf, torch.Tensor)}
        self.names = flat.names
        self.spec: pytree.TreeSpec = flat.spec
        self.numbers: dict[Path, Scalar] = {p: v for p, v in leaves_in(nested) if isinstance(v, _SCALARS)}
        self.paths: dict[str, Path] = {
            name: places.get(id(leaf), ())
            for name, leaf in zip(flat.names, flat.leaves, strict=True)
            if isinstance(leaf, torch.Tensor)
        }
        self.leaves = [_kept(keep, n, leaf) for n, leaf in zip(flat.names, flat.leaves, strict=True)]

    @property
    def tensors(self) -> dict[str, torch.Tensor]:
        return {n: v.tensor for n, v in zip(self.names, self.leaves, strict=True) if isinstance(v, Kept)}

    @property
    def flat_list(self) -> list[torch.Tensor]:
        return list(self.tensors.values())

    @property
    def arguments(self) -> dict[str, Any]:
        return self.built({}) | self.cst_kwargs

    def built(self, tensors: Mapping[str, torch.Tensor]) -> dict[str, Any]:
        """The nested arguments, in containers of their own, with these tensors in place of those of the call."""
        leaves = [
            tensors.get(n, v.tensor) if isinstance(v, Kept) else v for n, v in zip(self.names, self.leaves, strict=True)
        ]
        return unflatten(leaves, self.spec)

    def without(self, names: set[str]) -> InputCandidate:
        """The call without some arguments; what it keeps is shared."""
        kept = dict(zip(self.names, self.leaves, strict=True))
        arguments = {n: v for n, v in self.arguments.items() if n not in names}
        return InputCandidate(arguments, self.positional, lambda name, _tensor: kept[name])

    def __len__(self) -> int:
        return len(self.flat_list)

    def __str__(self) -> str:
        return f"InputCandidate({len(self)} tensors in {', '.join(self.built({})) or 'no arguments'})"

    def str_obs(self) -> str:
        shapes = ", ".join(f"{name}: {list(tensor.shape)}" for name, tensor in self.tensors.items())
        constants = "".join(f", {name}={value!r}" for name, value in self.cst_kwargs.items())
        return f"InputCandidate({shapes}{constants})"


class InputObserverInfo:
    """All that an observer has stored: the calls with their inputs, outputs and the seconds they took."""

    def __init__(self, signature: Signature):
        self.signature = signature
        self.inputs: list[InputCandidate] = []
        self.outputs: list[dict[str, Kept]] = []
        self.latencies: list[float] = []

    def __len__(self) -> int:
        return len(self.inputs)

    @property
    def signature_names(self) -> list[str]:
        return list(self.signature.names)

    @property
    def default_values(self) -> dict[str, Scalar]:
        return {n: v for n, v in self.signature.defaults.items() if isinstance(v, _SCALARS)}

    @property
    def flat_outputs(self) -> list[list[torch.Tensor]]:
        return [[kept.tensor for kept in outputs.values()] for outputs in self.outputs]

    def results(self, call: int) -> dict[str, torch.Tensor]:
        return {name: kept.tensor for name, kept in self.outputs[call].items()}


def stored_arguments(signature: Signature, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that differ from the defaults."""
    given = signature.arguments(args, kwargs)
    return {name: value for name, value in given.items() if not signature.is_default(name, value)}


def kept_outputs(store: Store, output: Any) -> dict[str, Kept]:
    return {name: store.keep(name, tensor) for name, tensor in flatten(output).tensors().items()}


def is_symbolic(value: Any) -> bool:
    """Whether a capture or an export is under way: such a call has no values to store."""
    tensors = (leaf for _, leaf in leaves_in(value) if isinstance(leaf, torch.Tensor))
    return any(not isinstance(size, int) for tensor in tensors for size in tensor.shape)


def _kept(keep: Callable[[str, torch.Tensor], Kept], name: str, leaf: Any) -> Any:
    if isinstance(leaf, torch.Tensor):
        return keep(name, leaf)
    if leaf is None or isinstance(leaf, (*_SCALARS, type)):
        return leaf
    try:  # the call may change it
        return copy.deepcopy(leaf)
    except Exception:  # what cannot be copied is a handle of some kind: the thing itself is what was meant
        return leaf


def _make_known(value: Any) -> None:
    """A cache without tensors yet looks like any other object: by its class it is one to flatten."""
    if is_cache(value):
        register_object(type(value))


def leaves_in(value: Any) -> Iterator[tuple[Path, Any]]:
    """Tensors, numbers and strings with the keys, indices and attributes that lead to them."""
    seen: set[int] = set()

    def walk(item: Any, path: Path) -> Iterator[tuple[Path, Any]]:
        if isinstance(item, (torch.Tensor, *_SCALARS)):
            yield path, item
            return
        if item is None or isinstance(item, type | torch.nn.Module) or id(item) in seen:
            return
        seen.add(id(item))
        if isinstance(item, Mapping):
            children: Any = item.items()
        elif isinstance(item, list | tuple):
            children = enumerate(item)
        else:
            children = vars(item).items() if hasattr(item, "__dict__") else ()
        for key, child in children:
            if isinstance(key, str | int):
                yield from walk(child, (*path, key))

    yield from walk(value, ())
