"""What programs are made of: expressions give a tensor, statements change the program's variables."""

from __future__ import annotations

from . import attention, branches, joining, layers, loops, pointwise, reductions, shaping, sizes, sorting, state, writes

__all__ = [
    "attention",
    "branches",
    "joining",
    "layers",
    "loops",
    "pointwise",
    "reductions",
    "shaping",
    "sizes",
    "sorting",
    "state",
    "writes",
]
