"""`import modelport.plugin`: transformers' own `AutoHfExporter` gives Modelport's exporters.

They are exporters of transformers, take its configs, and name what goes in and out as it does. What Modelport has no
exporter for stays transformers' own."""

from __future__ import annotations

import dataclasses
from collections.abc import MutableMapping
from typing import Any, ClassVar

from ..base.structure import flatten, unflatten
from ..exporters import base, configs, dynamo, executorch_exporter, onnx, openvino
from ..exporters.prepare import OUTPUT_FLAGS
from ..models.transformers_private import without_module

try:
    from transformers.exporters.auto import AUTO_EXPORTER_MAPPING
    from transformers.exporters.base import HfExporter
except ImportError as error:
    raise without_module(error, "import modelport.plugin") from error


class _Exporter(HfExporter):  # type: ignore[misc]  # transformers has no types
    """An exporter of transformers that hands on to one of ours."""

    ours: ClassVar[type[base.HfExporter]]
    config_class: ClassVar[type[configs.DynamoConfig]]
    defaults: ClassVar[dict[str, Any]] = {}  # where transformers' habit is another than ours

    def validate_environment(self, *_args: Any, **_kwargs: Any) -> None:
        self._exporter = self.ours()

    def export(self, model: Any, sample_inputs: MutableMapping[str, Any], config: Any = None) -> Any:
        return self._exporter.export(model, sample_inputs, self._config(config))

    def _config(self, config: Any) -> configs.DynamoConfig:
        """Ours with the fields of theirs. A field that we do not know is refused, unless it has its default."""
        if not dataclasses.is_dataclass(config) or isinstance(config, configs.ExportConfigMixin):
            return self.config_class.given(config)
        known = {field.name for field in dataclasses.fields(self.config_class)}
        given = {
            field.name: getattr(config, field.name)
            for field in dataclasses.fields(config)
            if field.name in known or getattr(config, field.name) != field.default
        }
        format_name = getattr(given["export_format"], "value", given["export_format"])
        return self.config_class.from_dict(self.defaults | given | {"export_format": format_name})  # type: ignore[return-value]


class DynamoExporter(_Exporter):
    ours = dynamo.DynamoExporter
    config_class = configs.DynamoConfig
    min_versions = ours.min_versions

    def export(self, model: Any, sample_inputs: MutableMapping[str, Any], config: Any = None) -> Any:
        """As with transformers, the program takes no flags (`use_cache`, ...), and they are gone from the inputs."""
        program = super().export(model, sample_inputs, config)
        for flag in OUTPUT_FLAGS:
            sample_inputs.pop(flag, None)
        inputs = program.captured.inputs
        taken = unflatten(inputs.leaves, inputs.spec)
        program.captured.inputs = flatten({name: taken[name] for name in taken if name not in OUTPUT_FLAGS})
        return program


class OnnxExporter(_Exporter):
    ours = onnx.OnnxExporter
    config_class = configs.OnnxConfig
    min_versions = ours.min_versions
    defaults: ClassVar[dict[str, Any]] = {"names": "transformers"}


class ExecutorchExporter(_Exporter):
    ours = executorch_exporter.ExecutorchExporter
    config_class = configs.ExecutorchConfig
    min_versions = ours.min_versions


class OpenVINOExporter(_Exporter):
    ours = openvino.OpenVINOExporter
    config_class = configs.OpenVINOConfig
    min_versions = ours.min_versions

    def export(self, model: Any, sample_inputs: MutableMapping[str, Any], config: Any = None) -> Any:
        """As with transformers, an openvino.Model."""
        return super().export(model, sample_inputs, config).model


AUTO_EXPORTER_MAPPING.update(
    dynamo=DynamoExporter, onnx=OnnxExporter, executorch=ExecutorchExporter, openvino=OpenVINOExporter
)
