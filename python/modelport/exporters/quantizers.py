"""Settings of quantizers under the names that users of transformers.exporters know."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from ..base.errors import problem
from .quantization import Quantization


@dataclasses.dataclass
class OnnxRuntimeDynamicConfig:
    """Weights in int8 with a scale for each row; inputs of products in uint8, by the range of each call."""

    op_types_to_quantize: list[str] | None = None
    per_channel: bool | None = None
    reduce_range: bool | None = None
    weight_type: Any = None
    nodes_to_quantize: list[str] | None = None
    nodes_to_exclude: list[str] | None = None
    extra_options: dict[str, Any] | None = None


@dataclasses.dataclass
class OnnxRuntimeStaticConfig:
    """The same with inputs by ranges that calibration finds, as QuantizeLinear and DequantizeLinear."""

    quant_format: Any = None
    op_types_to_quantize: list[str] | None = None
    per_channel: bool | None = None
    reduce_range: bool | None = None
    activation_type: Any = None
    weight_type: Any = None
    nodes_to_quantize: list[str] | None = None
    nodes_to_exclude: list[str] | None = None
    calibrate_method: Any = None
    calibration_providers: list[str] | None = None
    extra_options: dict[str, Any] | None = None


@dataclasses.dataclass
class OnnxRuntimeQuantizer:
    """One of these configs, and the inputs that ranges are measured on."""

    config: Any = dataclasses.field(default_factory=OnnxRuntimeStaticConfig)
    calibration_dataset: Iterable[dict[str, Any]] | None = None


_FORMS = {"OnnxRuntimeDynamicConfig": "dynamic", "OnnxRuntimeStaticConfig": "static"}
# What each field may say beside nothing: it is what is done anyway, or makes no difference.
_DONE_ANYWAY: dict[str, tuple[str, ...]] = {
    "per_channel": ("True", "False"),
    "reduce_range": ("False",),
    "weight_type": ("QInt8",),
    "activation_type": ("QUInt8",),
    "quant_format": ("QDQ",),
    "calibrate_method": ("MinMax",),
}


def settings_of(quantizer: Any) -> tuple[Quantization | None, Any]:
    """How weights are stored, and what ranges are measured on. Objects of transformers of the same names do, too."""
    if isinstance(quantizer, Quantization | dict):
        return Quantization.given(quantizer), None
    config, samples = quantizer, None
    if type(quantizer).__name__ == "OnnxRuntimeQuantizer":
        config, samples = quantizer.config, quantizer.calibration_dataset
    form = _FORMS.get(type(config).__name__)
    if form is None:
        what = f"a {type(config).__name__} is no quantizer for ONNX"
        raise problem("E0319", what, "OnnxRuntimeDynamicConfig()", 'dtype="int4" or "int8", and quantization={...}')
    for name, value in vars(config).items():
        _refuse_other(type(config).__name__, name, value)
    return Quantization(bits=8, form=form), samples


def _refuse_other(kind: str, name: str, value: Any) -> None:
    known = _DONE_ANYWAY.get(name, ())
    if value is None or value in ({}, []) or getattr(value, "name", str(value)) in known:
        return
    if name == "calibration_providers" or (name == "op_types_to_quantize" and {"MatMul", "Gemm"} & set(value)):
        return
    way = f"leave {name} out" + (f", or {name}={known[0]}" if known else "")
    raise problem("E0319", f"{kind}({name}={value!r}) is not done here", way)
