"""What every exporter is: it checks its environment and turns a model into an artifact."""

from __future__ import annotations

import importlib.metadata
from abc import ABC, abstractmethod
from collections.abc import MutableMapping
from typing import Any, ClassVar

from ..errors import problem


class HfExporter(ABC):
    """Base of the exporters. `required_packages` must be installed, `min_versions` are enforced."""

    required_packages: ClassVar[list[str]] = ["torch"]
    min_versions: ClassVar[dict[str, str]] = {}

    def __init__(self) -> None:
        self.validate_environment()

    def validate_environment(self) -> None:
        check_packages(type(self).__name__, self.required_packages, self.min_versions)

    @abstractmethod
    def export(self, model: Any, sample_inputs: MutableMapping[str, Any], config: Any) -> Any:
        """Exports the model with its forward keyword arguments as the example."""


def check_packages(who: str, required: list[str], minimum: dict[str, str] | None = None) -> None:
    """All packages that are missing or too old, in one message."""
    from packaging.version import Version

    bad = []
    for package in required:
        try:
            found = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            bad.append(f"{package} (missing)")
            continue
        least = (minimum or {}).get(package)
        if least and Version(found) < Version(least):
            bad.append(f"{package} {found} (needs {least})")
    if bad:
        names = " ".join(entry.split()[0] for entry in bad)
        raise problem("E0301", f"{who} needs {', '.join(bad)}", f"pip install -U {names}")
