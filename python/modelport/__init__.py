"""Modelport exports Hugging Face models to other runtimes: capture in milliseconds, values checked."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from .base.errors import ExportError
from .base.versions import own_version

# Names and where they live: torch is imported only when one of them is used.
_HOMES = {
    "capturing.captured": ("Captured",),
    "lazy.entry": ("capture",),
    "checking": ("CheckReport", "check"),
    "exporters.auto": (
        "AutoExportConfig",
        "AutoHfExporter",
        "get_hf_exporter",
        "register_export_config",
        "register_exporter",
    ),
    "exporters.base": ("HfExporter",),
    "exporters.configs": (
        "DynamoConfig",
        "ExecutorchConfig",
        "ExportConfigMixin",
        "ExportFormat",
        "OnnxConfig",
        "OpenVINOConfig",
    ),
    "exporters.dynamo": ("DynamoExporter", "load_pt2"),
    "exporters.exported_program": ("ExportedProgram",),
    "exporters.executorch": ("ExecutorchProgram",),
    "exporters.executorch_exporter": ("ExecutorchExporter",),
    "exporters.onnx": ("OnnxExporter",),
    "exporters.onnx_program": ("OnnxProgram",),
    "exporters.openvino": ("OpenVINOComponents", "OpenVINOExporter", "OpenVINOProgram"),
    "exporters.patches": ("apply_patches", "register_patch"),
    "exporters.prepare": ("get_leaf_tensors", "prepare_for_export"),
    "exporters.quantizers": ("OnnxRuntimeDynamicConfig", "OnnxRuntimeQuantizer", "OnnxRuntimeStaticConfig"),
    "exporters.preparers": ("precompute_export_inputs", "register_export_input_preparer"),
    "pages.differences": ("diff",),
    "observing": ("InputCandidate", "InputObserver", "InputObserverInfo"),
    "running": ("load",),
    "generation": (
        "Components",
        "decompose_for_generation",
        "decompose_multimodal",
        "decompose_prefill_decode",
        "is_multimodal",
    ),
}
_LAZY = {name: home for home, names in _HOMES.items() for name in names}

__all__ = ["ExportError", "__version__", *_LAZY]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return own_version()
    if name not in _LAZY:
        raise AttributeError(f"module 'modelport' has no attribute {name!r}")
    return getattr(import_module(f".{_LAZY[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
