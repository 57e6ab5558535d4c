#!/usr/bin/env python3
"""Writes docs/api.md: what `modelport` exports, with the docstrings of the sources. Nothing is imported for it."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "python/modelport"
PAGE = ROOT / "docs/api.md"
HEAD = """# Python API

The names that `modelport` exports, with what their sources say. Names that start with `_`, and modules that are not
named here, may change at any time. Written by `make api`; a test holds it against the code.

"""
# The order of the page: what most people need comes first. Names that are not here come last, as "Further".
TOPICS = {
    "Capture": ["capture", "Captured", "InputObserver", "InputObserverInfo", "InputCandidate"],
    "Export": [
        "OnnxExporter",
        "OnnxConfig",
        "OnnxProgram",
        "DynamoExporter",
        "DynamoConfig",
        "ExportedProgram",
        "ExecutorchExporter",
        "ExecutorchConfig",
        "ExecutorchProgram",
        "OnnxRuntimeDynamicConfig",
        "OnnxRuntimeStaticConfig",
        "OnnxRuntimeQuantizer",
    ],
    "Run and check": ["load", "load_pt2", "check", "CheckReport", "diff", "ExportError"],
    "Generation": [
        "Components",
        "decompose_for_generation",
        "decompose_prefill_decode",
        "decompose_multimodal",
        "is_multimodal",
    ],
    "As in transformers.exporters": [
        "AutoHfExporter",
        "AutoExportConfig",
        "HfExporter",
        "ExportConfigMixin",
        "ExportFormat",
        "get_hf_exporter",
        "register_exporter",
        "register_export_config",
        "prepare_for_export",
        "get_leaf_tensors",
        "register_patch",
        "apply_patches",
        "register_export_input_preparer",
        "precompute_export_inputs",
    ],
}
# What other rooms call, and people do not.
INNER = {
    "Captured": {"__init__", "lazy_program", "tensors_of", "tensors_by_name"},
    "Components": {"__init__", "lowered_again", "write"},
    "ExecutorchConfig": {"fewer_bits", "for_encoder", "without_encoder", "for_type"},
    "ExecutorchProgram": {"__init__", "method", "origin", "write"},
    "ExportConfigMixin": {"given"},
    "ExportError": {"__init__"},
    "InputCandidate": {"__init__", "built", "without"},
    "InputObserverInfo": {"__init__"},
    "OnnxProgram": {"__init__", "lowered_again", "write"},
}
Definition = ast.FunctionDef | ast.ClassDef


def exported() -> dict[str, str]:
    """Each exported name, and the module that has it."""
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_HOMES":
            homes = ast.literal_eval(node.value)
            return {name: home for home, names in homes.items() for name in names} | {"ExportError": "base.errors"}
    raise SystemExit("python/modelport/__init__.py has no _HOMES")


def definition(name: str, module: str) -> Definition:
    """Where the name is defined, through imports of the module."""
    path = PACKAGE / module.replace(".", "/")
    package = path.is_dir()
    tree = ast.parse((path / "__init__.py" if package else path.with_suffix(".py")).read_text())
    for node in tree.body:
        if isinstance(node, Definition) and node.name == name:
            return node
        if isinstance(node, ast.ImportFrom) and any((one.asname or one.name) == name for one in node.names):
            above = module.split(".")[: len(module.split(".")) - node.level + package]
            return definition(name, ".".join([*above, *filter(None, [node.module])]))
    raise SystemExit(f"modelport.{module} has no {name}")


def page() -> str:
    homes = exported()
    listed = {name for names in TOPICS.values() for name in names}
    if stale := sorted(listed - set(homes)):
        raise SystemExit(f"tools/api_page.py lists names that modelport has not: {', '.join(stale)}")
    further = {"Further": [name for name in homes if name not in listed]}
    text = HEAD
    for topic, names in (TOPICS | {topic: names for topic, names in further.items() if names}).items():
        text += f"## {topic}\n\n"
        for name in names:
            text += "\n\n".join(described(definition(name, homes[name]))) + "\n\n"
    return text.rstrip() + "\n"


def described(node: Definition) -> Iterator[str]:
    yield f"### {node.name}"
    if isinstance(node, ast.FunctionDef):
        yield block(signature(node, f"modelport.{node.name}"))
        yield prose(node)
        return
    inner = INNER.get(node.name, set())
    fields = [ast.unparse(one) for one in node.body if isinstance(one, ast.AnnAssign | ast.Assign)]
    fields = [one for one in fields if "ClassVar" not in one]
    begin = [method for method in methods(node) if method.name == "__init__" and "__init__" not in inner]
    if fields:
        yield block("\n".join([f"class modelport.{node.name}:", *(f"    {one}" for one in fields)]))
    elif begin:
        yield block(signature(begin[0], f"modelport.{node.name}"))
    yield prose(node)
    for method in methods(node):
        if not method.name.startswith("_") and method.name not in inner and ast.get_docstring(method):
            name = f"{node.name}.{method.name}"
            shown = name if "property" in map(ast.unparse, method.decorator_list) else signature(method, name)
            yield f"{block(shown)}\n\n{prose(method)}"


def methods(node: ast.ClassDef) -> list[ast.FunctionDef]:
    return [one for one in node.body if isinstance(one, ast.FunctionDef)]


def signature(node: ast.FunctionDef, name: str) -> str:
    """On one line where it fits."""
    kept = ast.parse(ast.unparse(node.args).join(["def f(", "): pass"])).body[0]
    assert isinstance(kept, ast.FunctionDef)
    if kept.args.args and kept.args.args[0].arg in ("self", "cls"):
        del kept.args.args[0]
    result = f" -> {ast.unparse(node.returns)}" if node.returns and node.name != "__init__" else ""
    line = f"{name}({ast.unparse(kept.args)}){result}"
    if len(line) <= 100:
        return line
    parts = [one.strip() for one in _split(ast.unparse(kept.args))]
    return "\n".join([f"{name}(", *(f"    {one}," for one in parts), f"){result}"])


def _split(arguments: str) -> list[str]:
    """At the commas between arguments."""
    parts, depth = [""], 0
    for letter in arguments:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def block(text: str) -> str:
    return f"```\n{text}\n```"


def prose(node: Definition) -> str:
    text = ast.get_docstring(node)
    if not text:
        raise SystemExit(f"modelport.{node.name} has no docstring")
    return inspect.cleandoc(text)


if __name__ == "__main__":
    PAGE.write_text(page())
    sys.exit(0)
