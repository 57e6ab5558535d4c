"""Reversible patches of model code: the last resort, each registered with the backend that needs it and its reason."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from ..symbolic.replaced_attributes import Factory, replaced_here

_PATCHES: dict[str, list[tuple[str, str, Factory]]] = {}


def register_patch(backend: str, *paths: str) -> Callable[[Factory], Factory]:
    """Decorates a factory that gets the original attribute and returns its replacement. A path is dotted:
    "torch.where", or "transformers.models.foo.modeling_foo.FooAttention.forward"."""

    def register(factory: Factory) -> Factory:
        for path in paths:
            owner, _, attribute = path.rpartition(".")
            _PATCHES.setdefault(backend, []).append((owner, attribute, factory))
        return factory

    return register


@contextmanager
def apply_patches(backend: str) -> Iterator[None]:
    """Installs the backend's patches and takes them back. A path that does not exist here is passed over. Functions and
    methods are replaced in this thread alone."""
    with ExitStack() as stack:
        for path, attribute, factory in _PATCHES.get(backend, []):
            owner = _resolve(path)
            if owner is not None and hasattr(owner, attribute):
                stack.enter_context(replaced_here(owner, attribute, factory))
        yield


def _resolve(path: str) -> Any:
    parts = path.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:cut]))
        except ImportError:
            continue
        for name in parts[cut:]:
            found = getattr(found, name, None)
        return found
    return None
