"""Modules that are left out until somebody asks for them, for a command that would only wait for them."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any

# Kernels in Python for tensors without data. Most operators have one in C++, which is used where this is left out.
META_KERNELS = "torch._meta_registrations"


class Shell(ModuleType):
    """Stands for a module. Of a package, the modules in it can be imported; whatever else somebody asks for imports the
    module itself, which then takes its place."""

    def __init__(self, name: str, folder: str | None = None, known: Mapping[str, Any] | None = None):
        super().__init__(name)
        self._known = known or {}
        if folder is not None:
            self.__path__ = [folder]
            start = os.path.join(folder, "__init__.py")
            self.__spec__ = importlib.util.spec_from_file_location(name, start, submodule_search_locations=[folder])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return self._known[name] if name in self._known else getattr(self.load(), name)

    def load(self) -> ModuleType:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return importlib.import_module(self.__name__)


def load(name: str) -> bool:
    """Imports the module if it was left out; False if there is nothing new."""
    shell = sys.modules.get(name)
    if not isinstance(shell, Shell):
        return False
    shell.load()
    return True
