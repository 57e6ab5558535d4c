"""Tools of ExecuTorch that compile for backends that we do not write for: what they need, and a call of them."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable
from typing import Any

import torch

from ..base.errors import problem

METHOD = "forward"


@dataclasses.dataclass(frozen=True)
class Backend:
    """`partitioner` and its kin are imported only when a program is made."""

    needs: tuple[str, ...]  # modules that have to be there
    install: str
    partitioners: Callable[[str], list[Any]]


def _openvino(_name: str) -> list[Any]:
    from executorch.backends.openvino.partitioner import OpenvinoPartitioner
    from executorch.exir.backend.backend_details import CompileSpec

    return [OpenvinoPartitioner([CompileSpec("device", b"CPU")])]


def _vulkan(_name: str) -> list[Any]:
    from executorch.backends.vulkan.partitioner.vulkan_partitioner import VulkanPartitioner

    return [VulkanPartitioner({"require_dynamic_shapes": False})]


def _cuda(name: str) -> list[Any]:
    from executorch.backends.cuda.cuda_backend import CudaBackend
    from executorch.backends.cuda.cuda_partitioner import CudaPartitioner
    from executorch.exir.backend.compile_spec_schema import CompileSpec

    platform = [CompileSpec("platform", b"windows")] if name == "cuda-windows" else []
    return [CudaPartitioner([CudaBackend.generate_method_name_compile_spec(METHOD), *platform])]


def _metal(_name: str) -> list[Any]:
    from executorch.backends.apple.metal.metal_backend import MetalBackend
    from executorch.backends.apple.metal.metal_partitioner import MetalPartitioner

    return [MetalPartitioner([MetalBackend.generate_method_name_compile_spec(METHOD)])]


def _mlx(_name: str) -> list[Any]:
    from executorch.backends.mlx import MLXPartitioner

    return [MLXPartitioner()]


def _coreml(name: str) -> list[Any]:
    """coreml_fp32, coreml_fp16, and with _cpu, _gpu or _ne where only that shall compute."""
    import coremltools as ct
    from executorch.backends.apple.coreml.compiler import CoreMLBackend
    from executorch.backends.apple.coreml.partition import CoreMLPartitioner

    _, precision, *unit = name.split("_")
    units = {"cpu": ct.ComputeUnit.CPU_ONLY, "gpu": ct.ComputeUnit.CPU_AND_GPU, "ne": ct.ComputeUnit.CPU_AND_NE}
    specs = CoreMLBackend.generate_compile_specs(
        compute_precision={"fp32": ct.precision.FLOAT32, "fp16": ct.precision.FLOAT16}[precision],
        compute_unit=units[unit[0]] if unit else ct.ComputeUnit.ALL,
        minimum_deployment_target=ct.target.iOS18,
    )
    return [CoreMLPartitioner(compile_specs=specs)]


def _qnn(_name: str) -> list[Any]:
    from executorch.backends.qualcomm.partition.qnn_partitioner import QnnPartitioner
    from executorch.backends.qualcomm.serialization.qc_schema import QcomChipset
    from executorch.backends.qualcomm.utils.utils import (
        generate_htp_compiler_spec,
        generate_qnn_executorch_compiler_spec,
    )

    options = generate_htp_compiler_spec(use_fp16=True)
    return [QnnPartitioner(generate_qnn_executorch_compiler_spec(QcomChipset.SM8750, options))]


_COMPILER = "pip install executorch==1.5.1, with what it requires"
BACKENDS = {
    "openvino": Backend(
        ("openvino", "nncf", "executorch.backends.openvino.partitioner"),
        f"{_COMPILER}, and pip install openvino nncf",
        _openvino,
    ),
    "vulkan": Backend(("executorch.backends.vulkan.partitioner.vulkan_partitioner",), _COMPILER, _vulkan),
    "cuda": Backend(
        ("triton", "executorch.backends.cuda.cuda_partitioner"),
        f"{_COMPILER}, a torch that was built for CUDA, and its toolkit (nvcc)",
        _cuda,
    ),
    "metal": Backend(("torchao.experimental.ops.mps",), f"on macOS: {_COMPILER}", _metal),
    "mlx": Backend(("mlx", "executorch.backends.mlx"), f"on macOS: {_COMPILER}, and pip install mlx", _mlx),
    "coreml": Backend(
        ("coremltools",), f"{_COMPILER}, and pip install coremltools==9.0 (macOS, or Linux on x86_64)", _coreml
    ),
    "qnn": Backend(
        ("executorch.backends.qualcomm.python.PyQnnManagerAdaptor",),
        "a build of executorch with Qualcomm's AI Engine Direct, and QNN_SDK_ROOT set to where that is",
        _qnn,
    ),
}


def tools_for(name: str) -> Backend:
    """Throws where they are not installed, and says what to install."""
    backend = BACKENDS["coreml" if name.startswith("coreml") else name.removesuffix("-windows")]
    for module in ("executorch.exir", *backend.needs):
        try:
            importlib.import_module(module)
        except Exception as error:  # tools that are half there fail in any way
            what = f"programs for {name} are compiled by its own tools, and {module} does not import: {error}"
            raise problem("E0203", what, backend.install, 'recipe="xnnpack", or --recipe xnnpack') from error
    return backend


def compiled(program: torch.export.ExportedProgram, name: str) -> Any:
    """The program for a backend, as ExecuTorch's own object."""
    partitioners = tools_for(name).partitioners(name)
    from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower

    checks = EdgeCompileConfig(_check_ir_validity=False, _skip_dim_order=True)
    edge = to_edge_transform_and_lower({METHOD: program}, partitioner={METHOD: partitioners}, compile_config=checks)
    return edge.to_executorch()
