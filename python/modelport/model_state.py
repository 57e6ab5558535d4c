"""A capture leaves the model as it was: attributes, buffers, and whatever the forward pass stored on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch


@contextmanager
def unchanged(module: torch.nn.Module | None, protect: Callable[[torch.Tensor], None]) -> Iterator[None]:
    """Puts every attribute of every submodule back on exit. Tensors that are plain attributes are handed to `protect`,
    which undoes writes to their memory."""
    if module is None:
        yield
        return
    saved = [(child, dict(vars(child)), _containers(child)) for child in module.modules()]
    for _, attributes, _ in saved:
        for value in attributes.values():
            if isinstance(value, torch.Tensor):
                protect(value)
    try:
        yield
    finally:
        for child, attributes, containers in saved:
            vars(child).clear()
            vars(child).update(attributes)
            for container, contents in containers:
                _refill(container, contents)


def _containers(child: torch.nn.Module) -> list[tuple[Any, Any]]:
    """Lists and dicts held by the module (its buffers among them) with their contents."""
    return [(v, v.copy()) for v in vars(child).values() if isinstance(v, dict | list) and hasattr(v, "copy")]


def _refill(container: Any, contents: Any) -> None:
    container.clear()
    if isinstance(container, dict):
        container.update(contents)
    else:
        container.extend(contents)
