"""The stubs of the extension modules have the names that the modules have."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from types import ModuleType

import pytest
import torch  # noqa: F401  # the extension needs its libraries

from modelport import _artifact, _modelport

PACKAGE = Path(__file__).resolve().parent.parent / "python" / "modelport"


def in_stub(body: list[ast.stmt]) -> dict[str, dict[str, object]]:
    """Names of a stub; those of classes with their members."""
    found: dict[str, dict[str, object]] = {}
    for node in body:
        if isinstance(node, ast.ClassDef):
            found[node.name] = dict(in_stub(node.body))
        elif isinstance(node, ast.FunctionDef):
            found[node.name] = {}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found[node.target.id] = {}
    found.pop("__init__", None)
    return found


def in_module(owner: object) -> dict[str, dict[str, object]]:
    names = [name for name in vars(owner) if not name.startswith(("__", "_pybind11"))]
    members = {name: getattr(owner, name) for name in names}
    return {name: dict(in_module(value)) if inspect.isclass(value) else {} for name, value in members.items()}


@pytest.mark.parametrize("module", [_modelport, _artifact], ids=lambda module: module.__name__)
def test_a_stub_has_the_names_of_its_module(module: ModuleType) -> None:
    stub = ast.parse((PACKAGE / f"{module.__name__.rpartition('.')[2]}.pyi").read_text())
    assert in_stub(stub.body) == in_module(module)
