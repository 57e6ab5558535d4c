"""A program while it grows: each statement runs for real at a few sets of sizes, and only what works is kept."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

MOST_NUMBERS = 4096
LARGEST = 1e5


class World:
    """The statements so far at one set of sizes. A world in which the program fails is over."""

    def __init__(self, sizes: Mapping[str, int], arguments: Mapping[str, Any]):
        self.sizes = dict(sizes)
        self.alive = True
        self._arguments = dict(arguments)
        self._kept: list[str] = []
        self._start()

    def _start(self) -> None:
        given = {name: x.clone() if isinstance(x, torch.Tensor) else x for name, x in self._arguments.items()}
        self.names: dict[str, Any] = {"torch": torch, "nn": nn, "F": F, "math": math, "self": nn.Module(), **given}

    def value(self, text: str) -> Any:
        with torch.no_grad():
            return eval(text, self.names)

    def works(self, text: str) -> bool:
        """Whether the statements run and leave nothing that cannot be compared; if not, it is as if they never ran."""
        try:
            with torch.no_grad():
                torch.manual_seed(0)
                exec(text, self.names)
            good = all(_fit(x) for name, x in self.names.items() if not name.startswith("__"))
        except Exception:
            good = False
        if not good:
            self._start()
            with torch.no_grad():
                for kept in self._kept:
                    exec(kept, self.names)
        return good

    def keep(self, text: str) -> None:
        """`text` has run."""
        self._kept.append(text)


def _fit(x: Any) -> bool:
    if isinstance(x, list | tuple):
        return len(x) < 64 and all(_fit(item) for item in x)
    if isinstance(x, int | float):
        return abs(x) < LARGEST
    if not isinstance(x, torch.Tensor):
        return True
    if x.numel() > MOST_NUMBERS or x.dim() > 5:
        return False
    if x.dtype == torch.bool or x.numel() == 0:
        return True
    return not bool(x.isnan().any()) and float(x.abs().max()) < LARGEST


def is_exact(x: Any) -> bool:
    """Whether every way to compute it gives the same bits: numbers that are sums of few powers of two."""
    if not isinstance(x, torch.Tensor) or not x.is_floating_point():
        return True
    if x.dtype in (torch.float16, torch.bfloat16):
        return False
    scaled = x.double() * 256
    return bool((scaled == scaled.round()).all()) and (x.numel() == 0 or float(x.abs().max()) < 4096)
