"""Modules that are left out until somebody asks for them, for a command that would only wait for them."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Mapping
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

META_KERNELS = "torch._meta_registrations"


class Shell(ModuleType):
    """Stands for a package or module. Whoever asks for more than it knows gets the module itself imported, which takes
    the place of its shell, and before it those whose shells are older. `alone` is a module in a package that does not
    need the package itself."""

    def __init__(self, name: str, folder: str | None = None, alone: str = "", known: Mapping[str, Any] | None = None):
        super().__init__(name)
        self.alone = f"{name}.{alone}"
        self.known = known or {}
        if folder is not None:
            self.__path__ = [folder]
            start = os.path.join(folder, "__init__.py")
            self.__spec__ = importlib.util.spec_from_file_location(name, start, submodule_search_locations=[folder])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        if name in self.known:
            return self.known[name]
        load(self.__name__)
        return getattr(sys.modules[self.__name__], name)


class ShellOfOperators:
    """Stands for the operators that a module which was left out defines: torch.ops.NAME."""

    def __init__(self, ops: Any, name: str):
        self._ops, self._name = ops, name
        setattr(ops, name, self)

    def __getattr__(self, name: str) -> Any:
        load()
        return getattr(getattr(self._ops, self._name), name)

    def give_way(self) -> None:
        if vars(self._ops).get(self._name) is self:
            delattr(self._ops, self._name)


class InShells(MetaPathFinder):
    """Sees to it that a package is imported before the modules in it."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        shell = sys.modules.get(name.rpartition(".")[0])
        if not isinstance(shell, Shell) or name == shell.alone:
            return None
        load(shell.__name__)
        return ModuleSpec(name, _Imported(sys.modules[name])) if name in sys.modules else None


class _Imported(Loader):
    """Loads a module that the package has imported by itself."""

    def __init__(self, module: ModuleType):
        self._module, self._spec = module, module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec


def load(module: str = META_KERNELS) -> bool:
    """Imports the module if it was left out, and what was left out before it; False if that is nothing."""
    names = [name for name, found in sys.modules.items() if isinstance(found, Shell)]
    if module not in names:
        return False
    names = names[: names.index(module) + 1]
    for operators in [x for x in vars(sys.modules["torch"].ops).values() if isinstance(x, ShellOfOperators)]:
        operators.give_way()
    for name in names:
        del sys.modules[name]
    for name in names:
        importlib.import_module(name)
    return True
