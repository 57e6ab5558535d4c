"""Exporters and their configurations by the name of the format."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..base.errors import problem
from .base import HfExporter
from .configs import DynamoConfig, ExecutorchConfig, ExportConfigMixin, ExportFormat, OnnxConfig, OpenVINOConfig
from .dynamo import DynamoExporter
from .executorch_exporter import ExecutorchExporter
from .onnx import OnnxExporter
from .openvino import OpenVINOExporter

AUTO_EXPORTER_MAPPING: dict[str, type[HfExporter]] = {
    "dynamo": DynamoExporter,
    "onnx": OnnxExporter,
    "executorch": ExecutorchExporter,
    "openvino": OpenVINOExporter,
}
AUTO_EXPORT_CONFIG_MAPPING: dict[str, type[ExportConfigMixin]] = {
    "dynamo": DynamoConfig,
    "onnx": OnnxConfig,
    "executorch": ExecutorchConfig,
    "openvino": OpenVINOConfig,
}


def _format_of(config: ExportConfigMixin | dict[str, Any]) -> str:
    wanted = config.get("export_format") if isinstance(config, dict) else config.export_format
    if wanted is None:
        raise problem(
            "E0306", "the export config has no 'export_format'", f"one of: {', '.join(AUTO_EXPORTER_MAPPING)}"
        )
    name = wanted.value if isinstance(wanted, ExportFormat) else str(wanted)
    if name not in AUTO_EXPORTER_MAPPING or name not in AUTO_EXPORT_CONFIG_MAPPING:
        raise problem("E0306", f"no exporter for the format {name!r}", f"one of: {', '.join(AUTO_EXPORTER_MAPPING)}")
    return name


class AutoExportConfig:
    """Makes the configuration of the format that a dict names."""

    @classmethod
    def from_dict(cls, export_config_dict: dict[str, Any]) -> ExportConfigMixin:
        """The dict has `export_format` and fields of that configuration."""
        return AUTO_EXPORT_CONFIG_MAPPING[_format_of(export_config_dict)].from_dict(export_config_dict)


class AutoHfExporter:
    """Makes the exporter of the format that a configuration names."""

    @classmethod
    def from_config(cls, export_config: ExportConfigMixin | dict[str, Any], **kwargs: Any) -> HfExporter:
        """A configuration or a dict of its fields; the keywords go to the exporter."""
        return AUTO_EXPORTER_MAPPING[_format_of(export_config)](**kwargs)

    @staticmethod
    def supports_export_format(export_config_dict: dict[str, Any]) -> bool:
        """Whether there is an exporter for the `export_format` of the dict."""
        wanted = export_config_dict.get("export_format")
        name = wanted.value if isinstance(wanted, ExportFormat) else wanted
        return name in AUTO_EXPORTER_MAPPING and name in AUTO_EXPORT_CONFIG_MAPPING


def get_hf_exporter(export_config: ExportConfigMixin | dict[str, Any]) -> HfExporter:
    """The exporter of a configuration, as `AutoHfExporter.from_config` gives it."""
    return AutoHfExporter.from_config(export_config)


def register_exporter(name: str) -> Callable[[type[HfExporter]], type[HfExporter]]:
    """Decorates an exporter class, which is then the one of that format."""

    def register(cls: type[HfExporter]) -> type[HfExporter]:
        if not issubclass(cls, HfExporter):
            raise TypeError("an exporter extends HfExporter")
        AUTO_EXPORTER_MAPPING[name] = cls
        return cls

    return register


def register_export_config(name: str) -> Callable[[type[ExportConfigMixin]], type[ExportConfigMixin]]:
    """Decorates a configuration class, which is then the one of that format."""

    def register(cls: type[ExportConfigMixin]) -> type[ExportConfigMixin]:
        if not issubclass(cls, ExportConfigMixin):
            raise TypeError("an export config extends ExportConfigMixin")
        AUTO_EXPORT_CONFIG_MAPPING[name] = cls
        return cls

    return register
