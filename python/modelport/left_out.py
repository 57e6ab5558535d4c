"""Modules that are left out until somebody asks for one of them, for a command that would only wait for them."""

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


class Shell(ModuleType):
    """Stands for a package or module. Whoever asks for more than it knows gets all that was left out imported, and the
    module itself takes the place of its shell. `alone` are modules in a package that need not the package itself."""

    def __init__(
        self,
        name: str,
        folder: str | None = None,
        *,
        alone: tuple[str, ...] = (),
        known: Mapping[str, Any] | None = None,
    ):
        super().__init__(name)
        self.alone = {f"{name}.{module}" for module in alone}
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
        load()
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
        if not isinstance(shell, Shell) or name in shell.alone:
            return None
        load()
        return ModuleSpec(name, _Imported(sys.modules[name])) if name in sys.modules else None


class _Imported(Loader):
    """Loads a module that the package has imported by itself."""

    def __init__(self, module: ModuleType):
        self._module, self._spec = module, module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec


def load() -> bool:
    """Imports what was left out; False if that is nothing."""
    names = [name for name, module in sys.modules.items() if isinstance(module, Shell)]
    if names:
        for shell in [x for x in vars(sys.modules["torch"].ops).values() if isinstance(x, ShellOfOperators)]:
            shell.give_way()
    for name in names:
        del sys.modules[name]
    for name in names:
        importlib.import_module(name)
    return bool(names)
