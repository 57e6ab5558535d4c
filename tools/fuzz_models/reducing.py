"""A program made smaller: statements and results go as long as the verdict stays."""

from __future__ import annotations

import ast
import dataclasses
import tempfile
from collections.abc import Iterator
from pathlib import Path

from .program import FuzzProgram
from .trying import Finding, try_program


def reduced(program: FuzzProgram, wanted: Finding) -> tuple[FuzzProgram, Finding]:
    """The smallest program found that has the verdict of `wanted` in the same way to run."""
    best, found = program, wanted
    going = True
    while going:
        going = False
        for source in _smaller(best.source):
            tried = dataclasses.replace(best, source=source, options=dict(program.options))
            again = _same(tried, wanted)
            if again is not None:
                best, found, going = tried, again, True
                break
    return best, found


def _same(program: FuzzProgram, wanted: Finding) -> Finding | None:
    with tempfile.TemporaryDirectory() as folder:
        try:
            ways = None if wanted.way == "capture" else [wanted.way]
            every = try_program(program, Path(folder), ways)
        except Exception:  # a program that lacks a variable
            return None
    matching = (one for one in every if one.verdict == wanted.verdict and one.way == wanted.way)
    return next(matching, None)


def _smaller(source: str) -> Iterator[str]:
    """The program without one of its statements, with one branch of an `if`, or with one of its results."""
    tree = ast.parse(source)
    model = next(node for node in tree.body if isinstance(node, ast.ClassDef))
    forward = next(node for node in model.body if isinstance(node, ast.FunctionDef) and node.name == "forward")
    result = forward.body[-1]
    assert isinstance(result, ast.Return) and result.value is not None
    value = result.value
    for part in [n for n in ast.walk(value) if isinstance(n, ast.Name)] if not isinstance(value, ast.Name) else ():
        result.value = part
        yield ast.unparse(tree)
    result.value = value
    for block in _blocks(forward):
        for i, statement in reversed(list(enumerate(block))):
            if statement is result:
                continue
            replacements: list[list[ast.stmt]] = [[ast.Pass()] if len(block) == 1 else []]
            if isinstance(statement, ast.If):
                replacements += [statement.body, statement.orelse] if statement.orelse else [statement.body]
            if isinstance(statement, ast.Pass):
                replacements = [] if len(block) == 1 else [[]]
            for replacement in replacements:
                kept = list(block)
                block[i : i + 1] = replacement
                yield ast.unparse(tree)
                block[:] = kept


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    for inner in ast.walk(node):
        for field in ("body", "orelse"):
            block = getattr(inner, field, None)
            if isinstance(block, list):
                yield block
