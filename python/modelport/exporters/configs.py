"""Configurations of the exporters: the fields and defaults that users of transformers.exporters know."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterator
from enum import Enum
from typing import Any

from ..errors import problem


class ExportFormat(Enum):
    EXECUTORCH = "executorch"
    DYNAMO = "dynamo"
    ONNX = "onnx"


@dataclasses.dataclass
class ExportConfigMixin:
    """What all configurations share: they turn into a dict and back."""

    export_format: ExportFormat

    @classmethod
    def from_dict(cls, config_dict: dict[str, Any]) -> ExportConfigMixin:
        known = {field.name for field in dataclasses.fields(cls)}
        unknown = sorted(set(config_dict) - known)
        if unknown:
            raise problem(
                "E0301", f"{cls.__name__} has no field {', '.join(unknown)}", f"it has: {', '.join(sorted(known))}"
            )
        return cls(**config_dict)

    def to_dict(self) -> dict[str, Any]:
        return copy.deepcopy(vars(self))

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        yield from vars(self).items()


@dataclasses.dataclass
class DynamoConfig(ExportConfigMixin):
    """How to export to `.pt2`.

    `dynamic` makes every axis longer than 1 symbolic, `dynamic_shapes` says it axis by axis and goes first. `strict`
    and `prefer_deferred_runtime_asserts_over_guards` steer torch's tracer, which is not used here: they are accepted
    and make no difference. `quantizer` is not supported yet.
    """

    export_format: ExportFormat = ExportFormat.DYNAMO
    dynamic: bool = False
    strict: bool = False
    dynamic_shapes: Any = None
    prefer_deferred_runtime_asserts_over_guards: bool = False
    quantizer: Any = None

    def __post_init__(self) -> None:
        if isinstance(self.export_format, str):
            self.export_format = ExportFormat(self.export_format)
        if self.quantizer is not None:
            raise problem(
                "E0301", "quantizers are not supported yet", "export without quantizer, then quantize the artifact"
            )
