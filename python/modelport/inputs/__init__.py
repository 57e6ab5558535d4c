"""Example inputs by rule, and the class of a model: from forward signatures, configs and preprocessor configs."""

from __future__ import annotations

from importlib import import_module
from typing import Any

# Names and where they live: torch is imported only when inputs are made.
_HOMES = {"example": ("ExampleInputs", "example_inputs", "further_sizes"), "task": ("known_tasks", "model_class")}
_LAZY = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [*_LAZY]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'modelport.inputs' has no attribute {name!r}")
    return getattr(import_module(f".{_LAZY[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
