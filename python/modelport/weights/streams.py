"""Where a writer takes weights from that are not in memory as the program has them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import torch


@dataclasses.dataclass
class WeightStreams:
    """Where a writer takes weights from, by name, other than the program's own tensors. What has another type than
    those is converted on the way."""

    places: dict[str, tuple[str, int, torch.dtype]] = dataclasses.field(default_factory=dict)  # file, offset
    made: dict[str, tuple[torch.dtype, Callable[[], torch.Tensor]]] = dataclasses.field(default_factory=dict)
