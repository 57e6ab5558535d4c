"""Quantized weights: next to torchao's, and in the kernels of onnxruntime that read them."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import pytest
import torch

from modelport.base import core
from modelport.base.errors import ExportError


def quantize(
    weight: torch.Tensor,
    layout: str,
    *,
    bits: int = 4,
    group: int = 0,
    zero_points: bool = False,
    choice: str = "search",
    scales: torch.dtype | None = None,
    input_energies: tuple[float, ...] = (),
) -> tuple[Any, ...]:
    scheme = core.QuantizationScheme(
        layout=layout, bits=bits, group=group, zero_points=zero_points, choice=choice, scales=scales
    )
    return core.quantize("weight", weight, scheme, list(input_energies))


def weights(kind: str, rows: int = 64, columns: int = 256) -> torch.Tensor:
    torch.manual_seed(0)
    if kind == "normal":
        return torch.randn(rows, columns) * 0.02
    return torch.distributions.StudentT(3.0).sample((rows, columns)) * 0.02


def error(weight: torch.Tensor, back: torch.Tensor) -> float:
    return float((weight.double() - back.double()).norm() / weight.double().norm())


def dequantized(codes: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """Of a code a byte."""
    groups = codes.double().unflatten(1, (scales.shape[1], -1))
    return (groups * scales.double().unsqueeze(2)).flatten(1)


# --- torchao ---------------------------------------------------------------------------------------------------------

torchao_installed = pytest.mark.skipif(
    importlib.util.find_spec("torchao") is None,
    reason="compares with torchao: pip install --no-deps torchao==0.18.0",
)


def by_torchao(weight: torch.Tensor, bits: int, group: int, algorithm: str, scale: torch.Tensor | None = None) -> Any:
    """What Int8DynamicActivationIntxWeightConfig makes of a weight of nn.Linear."""
    from torchao.quantization.quantize_.workflows import IntxChooseQParamsAlgorithm, IntxUnpackedToInt8Tensor

    return IntxUnpackedToInt8Tensor.from_hp(
        weight,
        (1, group),
        getattr(torch, f"int{bits}"),
        intx_choose_qparams_algorithm=None if scale is not None else IntxChooseQParamsAlgorithm(algorithm),
        custom_scale=scale,
        custom_zero_point=None if scale is None else torch.zeros_like(scale, dtype=torch.int8),
    )


@torchao_installed
@pytest.mark.parametrize("kind", ["normal", "heavy tails"])
@pytest.mark.parametrize(("bits", "group"), [(4, 32), (4, 128), (4, 256), (8, 32), (8, 256)])
def test_codes_and_scales_by_range_are_those_of_torchao(kind: str, bits: int, group: int) -> None:
    weight = weights(kind)
    codes, scales, zero_points, *_ = quantize(weight, "torchao_int8", bits=bits, group=group, choice="range")
    theirs = by_torchao(weight, bits, group, "affine")
    assert zero_points is None
    assert torch.equal(codes, theirs.qdata)
    assert torch.equal(scales, theirs.scale)


@torchao_installed
def test_codes_of_8da4w_are_those_of_torchao_for_the_scales_that_xnnpack_stores() -> None:
    """torchao computes codes with scales of f32, which are rounded to bf16 on the way to XNNPACK; we compute them with
    the rounded ones."""
    weight = weights("normal")
    packed, scales, *_ = quantize(weight, "xnnpack_qbint4", group=32, choice="range")
    rounded = by_torchao(weight, 4, 32, "affine").scale.bfloat16()
    assert torch.equal(scales, rounded)
    codes = torch.stack([packed & 15, packed >> 4], dim=2).flatten(1).to(torch.int8) - 8
    theirs = by_torchao(weight, 4, 32, "affine", scale=rounded.float())
    assert torch.equal(codes, theirs.qdata)


@torchao_installed
@pytest.mark.parametrize("kind", ["normal", "heavy tails"])
@pytest.mark.parametrize(("bits", "group"), [(4, 32), (4, 64), (4, 128), (4, 256), (8, 32), (8, 256)])
def test_searched_scales_are_better_than_those_of_hqq(kind: str, bits: int, group: int) -> None:
    weight = weights(kind, rows=256)
    codes, scales, _, reported, _ = quantize(weight, "torchao_int8", bits=bits, group=group)
    hqq = by_torchao(weight, bits, group, "hqq_scale_only")
    ours = error(weight, dequantized(codes, scales))
    assert ours < error(weight, dequantized(hqq.qdata, hqq.scale))
    assert ours < error(weight, by_torchao(weight, bits, group, "affine").dequantize())
    assert reported == pytest.approx(ours, rel=1e-4)


@torchao_installed
def test_searched_scales_of_bf16_are_better_than_those_of_hqq() -> None:
    weight = weights("normal", rows=256).bfloat16()
    codes, scales, *_ = quantize(weight, "torchao_int8", group=32, scales=torch.bfloat16)
    hqq = by_torchao(weight, 4, 32, "hqq_scale_only")
    assert hqq.scale.dtype == scales.dtype == torch.bfloat16
    assert error(weight, dequantized(codes, scales)) < error(weight, dequantized(hqq.qdata, hqq.scale))


# --- onnxruntime -----------------------------------------------------------------------------------------------------


def run_node(op: str, feeds: dict[str, np.ndarray], attributes: dict[str, int]) -> np.ndarray:
    """The node's output; every input is one of the graph."""
    onnx = pytest.importorskip("onnx")
    onnxruntime = pytest.importorskip("onnxruntime")
    helper = onnx.helper
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        for name, value in feeds.items()
        if name
    ]
    node = helper.make_node(op, list(feeds), ["out"], domain="com.microsoft", **attributes)
    output = helper.make_tensor_value_info("out", onnx.TensorProto.FLOAT, None)
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(helper.make_graph([node], "g", inputs, [output]), opset_imports=opsets)
    model.ir_version = 10
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {name: value for name, value in feeds.items() if name})[0]


@pytest.mark.parametrize("accuracy_level", [0, 4])
@pytest.mark.parametrize(("bits", "zero_points"), [(4, False), (4, True), (8, False), (8, True)])
def test_onnxruntime_multiplies_with_quantized_weights(bits: int, zero_points: bool, accuracy_level: int) -> None:
    weight = weights("heavy tails", rows=24, columns=80)  # 80 is no multiple of 32
    codes, scales, zeros, reported, _ = quantize(
        weight, "onnx_matmul_nbits", bits=bits, group=32, zero_points=zero_points
    )
    assert (scales < 0).any() or zero_points
    x = torch.randn(5, 80)
    feeds = {"x": x.numpy(), "codes": codes.numpy(), "scales": scales.numpy()}
    if zero_points:
        feeds["zeros"] = zeros.numpy()
    sizes = {"K": 80, "N": 24, "bits": bits, "block_size": 32, "accuracy_level": accuracy_level}
    product = torch.from_numpy(run_node("MatMulNBits", feeds, sizes))
    identity = torch.from_numpy(
        run_node("MatMulNBits", feeds | {"x": np.eye(80, dtype=np.float32)}, sizes | {"accuracy_level": 0})
    )
    assert error(weight, identity.T) == pytest.approx(reported, rel=1e-3)
    assert error(x @ identity, product) < (1e-5 if accuracy_level == 0 else 0.03)


@pytest.mark.parametrize(("bits", "zero_points"), [(4, False), (4, True), (8, False), (8, True)])
def test_onnxruntime_gathers_quantized_rows(bits: int, zero_points: bool) -> None:
    weight = weights("normal", rows=24, columns=80)
    codes, scales, zeros, reported, _ = quantize(
        weight, "onnx_gather_block_quantized", bits=bits, group=16, zero_points=zero_points
    )
    feeds = {"codes": codes.numpy(), "ids": np.arange(24), "scales": scales.numpy()}
    if zero_points:
        feeds["zeros"] = zeros.numpy()
    settings = {"bits": bits, "block_size": 16, "gather_axis": 0, "quantize_axis": 1}
    rows = torch.from_numpy(run_node("GatherBlockQuantized", feeds, settings))
    assert error(weight, rows) == pytest.approx(reported, rel=1e-4)
    assert reported < (0.1 if bits == 4 else 0.006)


# --- what users are told ---------------------------------------------------------------------------------------------


def test_a_group_that_does_not_divide_is_refused_with_groups_that_do() -> None:
    with pytest.raises(ExportError, match=r"E0301.*weight \[4, 96\] cannot be quantized with groups of 64") as caught:
        quantize(torch.ones(4, 96), "xnnpack_qbint4", group=64)
    assert "group size 32" in str(caught.value)


def test_energies_of_the_inputs_lower_the_error_of_the_output() -> None:
    weight = weights("normal")
    energies = tuple(float(10 ** (column % 4)) for column in range(256))
    inputs = torch.randn(2048, 256) * torch.tensor(energies).sqrt()

    def of_output(codes: torch.Tensor, scales: torch.Tensor, *_: Any) -> float:
        return error(inputs.double() @ weight.double().T, inputs.double() @ dequantized(codes, scales).T)

    plain = quantize(weight, "torchao_int8", group=32)
    weighted = quantize(weight, "torchao_int8", group=32, input_energies=energies)
    assert of_output(*weighted) < 0.9 * of_output(*plain)
    assert weighted[4] == pytest.approx(of_output(*weighted), rel=0.05)
    assert plain[4] is None
