"""What every program begins with; the harness draws its inputs with the same functions."""

from __future__ import annotations

import torch
from torch import nn


def settle(module: nn.Module) -> None:
    """Parameters that are small multiples of a quarter: sums and products of them have no rounding."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randint(-4, 5, parameter.shape) / 4)


def draw(kind: str, shape: list[int], seed: int) -> torch.Tensor:
    """Numbers of an input: multiples of a quarter, tokens, or a mask."""
    generator = torch.Generator().manual_seed(seed)
    if kind == "float":
        return torch.randint(-8, 9, shape, generator=generator) / 4
    if kind == "int":
        return torch.randint(0, 10, shape, generator=generator)
    return torch.randint(0, 2, shape, generator=generator).bool()
