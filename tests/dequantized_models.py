"""Models with the weights that quantized ones stand for, and inputs of products rounded as XNNPACK rounds them."""

from __future__ import annotations

import copy
from typing import Any

import torch

from modelport.base import core

# Layout, bits and columns that share a scale, by the names that people give them.
LINEAR = {
    "8da4w": ("xnnpack_qbint4", 4, 32),
    "8da8w": ("xnnpack_qcint8", 8, 0),
    "4w": ("xnnpack_qcint4", 4, 0),
    "8w": ("xnnpack_qcint8", 8, 0),
}
EMBEDDING = {"8w": ("executorch_embedding_byte", 8, 0), "4w": ("executorch_embedding_4bit", 4, 32)}
Scheme = tuple[str, int, int]


def with_dequantized_weights(model: Any, linear: Scheme | None, embedding: Scheme | None = None) -> Any:
    """A weight that an embedding and a product share becomes two."""
    model = copy.deepcopy(model)
    for module in model.modules():
        scheme = linear if isinstance(module, torch.nn.Linear) else embedding
        if isinstance(module, torch.nn.Linear | torch.nn.Embedding) and scheme is not None:
            module.weight = torch.nn.Parameter(dequantized(module.weight.detach(), *scheme))
    return model


def with_rounded_inputs(model: Any) -> Any:
    """Every linear layer of the model rounds its inputs to 8 bits, each row by its own range."""
    for module in model.modules():
        if isinstance(module, torch.nn.Linear):
            module.register_forward_pre_hook(lambda _, args: (rounded_to_bytes(args[0]), *args[1:]))
    return model


def rounded_to_bytes(x: torch.Tensor) -> torch.Tensor:
    low, high = x.amin(-1, keepdim=True).clamp(max=0), x.amax(-1, keepdim=True).clamp(min=0)
    scale = torch.where(high > low, (high - low) / 255, torch.ones_like(low))
    # Of the two ends the one that is rounded less decides where zero lies.
    nearer_low = -128 + low / scale + 127 + high / scale > 0
    zero = torch.where(nearer_low, -128 - low / scale, 127 - high / scale).clamp(-128, 127).round()
    return ((x / scale).round() + zero).clamp(-128, 127).sub(zero) * scale


def dequantized(weight: torch.Tensor, layout: str, bits: int, group: int) -> torch.Tensor:
    codes, scales = quantized(weight, layout, bits, group)
    if bits == 4:
        first, second = (codes & 15, codes >> 4) if layout.startswith("xnnpack") else (codes >> 4, codes & 15)
        codes = torch.stack([first, second], -1).flatten(-2).to(torch.int16) - 8
    scales = scales.float().reshape(weight.shape[0], -1)
    return codes.float() * scales.repeat_interleave(weight.shape[1] // scales.shape[1], 1)


def quantized(weight: torch.Tensor, layout: str, bits: int, group: int) -> tuple[torch.Tensor, torch.Tensor]:
    scheme = core._modelport.QuantizationScheme(
        layout=layout, bits=bits, group=group, zero_points=False, choice="search", scales=None
    )
    codes, scales, *_ = core._modelport.quantize("weight", weight, scheme, [])
    return codes, scales
