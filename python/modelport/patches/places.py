"""Where model code is replaced: kinds of functions are found by their parameters, the rest by name."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from types import CellType
from typing import Any

from ..symbolic.replaced_attributes import Factory, original


class Found(Enum):
    """Where a target is replaced."""

    AT_HOME = "where it is defined"
    IN_CLASS = "in classes of the model, and those that they inherit from"
    UNDER_DECORATORS = "in classes of the model, under decorators, which stay in place"
    IN_SCANS = "where modules of the model have a selective scan"


@dataclasses.dataclass(frozen=True)
class Kind:
    """Functions of the model's modules and methods of its classes with these parameters, whatever they are called."""

    parameters: str  # as the function has them, `...` at the end for whatever follows
    why: str
    test: str  # file::function, which fails where the replacement gives other values
    factory: Factory  # a `where_values_agree`: other code may have such parameters

    def has(self, function: Any) -> bool:
        wanted = self.parameters.endswith(", ...") or not function.__code__.co_flags & inspect.CO_VARKEYWORDS
        return wanted and _has_parameters(function, self.parameters)


def _has_parameters(function: Any, wanted: str) -> bool:
    code = function.__code__
    names, first = code.co_varnames[: code.co_argcount], tuple(wanted.removesuffix(", ...").split(", "))
    return names[: len(first)] == first if wanted.endswith(", ...") else names == first


@dataclasses.dataclass(frozen=True)
class Patch:
    target: str  # a dotted name
    why: str
    test: str
    factory: Factory
    found: Found
    parameters: str = ""  # where releases differ: those that it was written for, as of a `Kind`. Others are left alone

    @property
    def name(self) -> str:
        return self.target.rpartition(".")[2]

    @property
    def home(self) -> str:
        return self.target.rpartition(".")[0]


Places = Iterator[tuple[Any, str]]
_START = 2  # parameters: every kind has more


def places_of_kinds(kinds: Iterable[Kind], scopes: list[Any], bases: set[type]) -> Iterator[tuple[Any, str, Factory]]:
    """Functions that modules of the model define or import, and methods of its classes."""
    by_start: dict[tuple[str, ...], list[Kind]] = {}
    for kind in kinds:
        by_start.setdefault(tuple(kind.parameters.split(", ")[:_START]), []).append(kind)
    for owner in (*scopes, *bases):
        functions = [name for name, value in vars(owner).items() if inspect.isfunction(_unbound(value))]
        for name in functions:
            function = _plain(owner, name)
            # Thousands of functions are looked at: nearly all begin otherwise than any kind.
            for kind in by_start.get(function.__code__.co_varnames[:_START], ()):
                if kind.has(function):
                    yield owner, name, kind.factory


def _plain(owner: Any, name: str) -> Any:
    """The function as it was written, under decorators and under what this process put there."""
    return inspect.unwrap(_unbound(original(owner, name)))


def _unbound(value: Any) -> Any:
    return value.__func__ if isinstance(value, staticmethod) else value


def places_of_patch(patch: Patch, scopes: list[Any], bases: set[type]) -> Places:
    for owner, name in _PLACES[patch.found](patch, scopes, bases):
        if not patch.parameters or _has_parameters(_plain(owner, name), patch.parameters):
            yield owner, name


def _at_home(patch: Patch, _scopes: list[Any], _bases: set[type]) -> Places:
    module, _, owner = patch.home.rpartition(".")
    found = sys.modules.get(patch.home) or getattr(sys.modules.get(module), owner, None)
    if found is not None and hasattr(found, patch.name):
        yield found, patch.name


def _in_class(patch: Patch, _scopes: list[Any], bases: set[type]) -> Places:
    for cls in bases:
        if f"{cls.__module__}.{cls.__qualname__}" == patch.home and hasattr(cls, patch.name):
            yield cls, patch.name


def _under_decorators(patch: Patch, scopes: list[Any], bases: set[type]) -> Places:
    """The cell in which the innermost decorator keeps the function that it calls."""
    for cls, name in _in_class(patch, scopes, bases):
        holder = getattr(cls, name)
        while hasattr(holder.__wrapped__, "__wrapped__"):
            holder = holder.__wrapped__
        cells: tuple[CellType, ...] = holder.__closure__ or ()
        yield next(c for c in cells if original(c, "cell_contents") is holder.__wrapped__), "cell_contents"


def _in_scans(patch: Patch, scopes: list[Any], _bases: set[type]) -> Places:
    scanning = [scope for scope in scopes if hasattr(scope, "mamba_selective_scan")]
    if scanning and patch.name == "associative_scan":
        yield importlib.import_module(patch.home), patch.name
    elif patch.name != "associative_scan":
        yield from ((scope, patch.name) for scope in scanning if hasattr(scope, patch.name))


_PLACES: dict[Found, Callable[[Patch, list[Any], set[type]], Places]] = {
    Found.AT_HOME: _at_home,
    Found.IN_CLASS: _in_class,
    Found.UNDER_DECORATORS: _under_decorators,
    Found.IN_SCANS: _in_scans,
}
