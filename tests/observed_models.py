"""Small modules and tensors for the tests of InputObserver."""

from __future__ import annotations

from typing import Any

import torch


class Sum(torch.nn.Module):
    """Adds whatever it is given."""

    def forward(self, x=None, y=None, z=None, times: int = 1):
        return times * sum(part for part in (x, y, z) if part is not None)


class Decoder(torch.nn.Module):
    """The calls of a generation without a model: a cache that grows, images in the first call alone."""

    def forward(self, input_ids, attention_mask=None, pixel_values=None, past=None):
        new = input_ids.to(torch.float32)[:, None, :, None].expand(-1, 2, -1, 4)
        past = new if past is None else torch.cat([past, new], dim=2)
        return {"logits": past.sum(dim=(1, 2)), "past": past}


def a(*sizes: int) -> torch.Tensor:
    return torch.randn(sizes)


def ids(*sizes: int) -> torch.Tensor:
    return torch.randint(1, 9, sizes)


def shapes(arguments: Any) -> Any:
    values = arguments.items() if isinstance(arguments, dict) else enumerate(arguments)
    return {key: tuple(value.shape) for key, value in values if isinstance(value, torch.Tensor)}
