"""What every exporter is: it checks its environment and turns a model into an artifact."""

from __future__ import annotations

import dataclasses
import importlib.metadata
from abc import ABC, abstractmethod
from collections.abc import MutableMapping
from typing import Any, ClassVar

from ..base.errors import problem
from .configs import DynamoConfig, ExecutorchConfig, ExportConfigMixin, OnnxConfig


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

    def export_for_generation(
        self,
        model: Any,
        sample_inputs: MutableMapping[str, Any],
        config: Any = None,
        generation_config: Any = None,
        multi_token_decode: bool = False,
    ) -> dict[str, Any]:
        """Exports the parts that `decompose_for_generation` finds. `sample_inputs` are those of `model.generate`;
        `config` is one for all parts or a dict with one for each."""
        from ..generation.decompose import decompose_for_generation

        parts = decompose_for_generation(model, sample_inputs, generation_config, multi_token_decode)
        return {name: self.export(part, given, config_of_part(config, name)) for name, (part, given) in parts.items()}


def config_of_part(config: Any, name: str) -> Any:
    """The config of a part: the one for all, or what a dict by the parts' names has for it."""
    if is_one_config(config):
        return config
    if name not in config:
        raise problem("E0306", f"the config by part has none for {name}", f"add config[{name!r}]")
    return config[name]


def is_one_config(config: Any) -> bool:
    """Whether it is the config of all parts, not a dict of them."""
    return not isinstance(config, dict) or not config or not all(map(_is_config, config.items()))


def _is_config(item: tuple[str, Any]) -> bool:
    """Whether an entry of a dict is the config of a part, and not a field of a config."""
    fields = {field.name for kind in (DynamoConfig, ExecutorchConfig, OnnxConfig) for field in dataclasses.fields(kind)}
    return isinstance(item[1], dict | ExportConfigMixin) and item[0] not in fields


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
        raise problem("E0307", f"{who} needs {', '.join(bad)}", f"pip install -U {names}")
