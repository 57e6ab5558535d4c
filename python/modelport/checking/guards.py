"""Conditions on sizes as an artifact's metadata has them, such as `width%4 == 0`, held against the sizes of inputs."""

from __future__ import annotations

import ast
import operator
from collections.abc import Mapping
from typing import Any

_OPERATORS: dict[type, Any] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.USub: operator.neg,
    ast.Not: operator.not_,
    ast.And: all,
    ast.Or: any,
}
_FUNCTIONS = {"min": min, "max": max, "abs": abs}


def holds(condition: str, sizes: Mapping[str, int]) -> bool | None:
    """Whether it holds at these sizes; None where it speaks of something else, or in a way that is not known here."""
    try:
        return bool(_value(ast.parse(condition, mode="eval").body, sizes))
    except (ArithmeticError, KeyError, RecursionError, SyntaxError, TypeError, ValueError):
        return None


def _value(node: ast.expr, sizes: Mapping[str, int]) -> Any:
    match node:
        case ast.Constant(value=bool() | int() as number):
            return number
        case ast.Name(id=name):
            return sizes[name]
        case ast.BinOp(left=left, op=op, right=right):
            return _OPERATORS[type(op)](_value(left, sizes), _value(right, sizes))
        case ast.UnaryOp(op=op, operand=operand):
            return _OPERATORS[type(op)](_value(operand, sizes))
        case ast.BoolOp(op=op, values=values):
            return _OPERATORS[type(op)](_value(value, sizes) for value in values)
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return _OPERATORS[type(op)](_value(left, sizes), _value(right, sizes))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
            return _FUNCTIONS[name](*(_value(arg, sizes) for arg in args))
    raise KeyError(ast.dump(node))
