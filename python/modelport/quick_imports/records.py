"""Which installed packages have a module, without reading the records of all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import metadata


class PackagesByModule(Mapping[str, list[str]]):
    """What `importlib.metadata.packages_distributions` gives. Of a module whose package has its name, that package
    alone is told: it is the first that anybody would try. All records are read for any other question."""

    def __init__(self, read_all: Callable[[], Mapping[str, list[str]]]):
        self._read_all = read_all
        self._all: Mapping[str, list[str]] | None = None
        self._own: dict[str, list[str] | None] = {}

    def __getitem__(self, module: str) -> list[str]:
        if self._all is None:
            if module not in self._own:
                self._own[module] = _of_its_name(module)
            own = self._own[module]
            if own is not None:
                return own
        return self._everything()[module]

    def __iter__(self) -> Iterator[str]:
        return iter(self._everything())

    def __len__(self) -> int:
        return len(self._everything())

    def _everything(self) -> Mapping[str, list[str]]:
        if self._all is None:
            self._all = self._read_all()
        return self._all


def _of_its_name(module: str) -> list[str] | None:
    try:
        package = metadata.distribution(module.replace("_", "-"))
    except metadata.PackageNotFoundError:
        return None
    declared = package.read_text("top_level.txt")
    if declared:
        own = module in declared.split()
    else:
        own = f"\n{module}/__init__.py," in "\n" + (package.read_text("RECORD") or "")
    return [package.metadata["Name"]] if own else None
