"""Modelport exports Hugging Face models to other runtimes: capture in milliseconds, values checked."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .errors import ExportError

if TYPE_CHECKING:
    from .captured import Captured
    from .capturing import capture

# Names and where they live: torch is imported only when one of them is used.
_LAZY = {
    "Captured": "captured",
    "capture": "capturing",
}

__all__ = ["ExportError", *_LAZY]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'modelport' has no attribute {name!r}")
    return getattr(import_module(f".{_LAZY[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
