"""One output of an artifact beside that of the model, as a row of the report."""

from __future__ import annotations

import torch

from ..values.tolerance import Tolerance, argmax_kept, cosine, same_values, scale, wide
from .report import Row


def row_of(row: Row, got: torch.Tensor, want: torch.Tensor, tolerance: Tolerance) -> Row:
    """Fills a row of the report."""
    if got.dtype != want.dtype:
        row.ok, row.what = False, f"is {_short(got.dtype)} instead of {_short(want.dtype)}"
        return row
    if got.shape != want.shape:
        row.ok, row.what = False, f"has shape {list(got.shape)} instead of {list(want.shape)}"
        row.absolute = row.relative = float("inf")
        return row
    if want.numel() == 0:
        return row
    row.ok = same_values(got, want, tolerance)
    if row.ok and want.dtype.is_floating_point and bool(want.isnan().any()):
        row.what = "NaN, as the model has"
    gap = distance(got, want)
    row.absolute = gap.max().item()
    size = wide(want).abs().nan_to_num(nan=0.0, posinf=0.0)
    row.relative = (gap / (size + scale(want)).clamp_min(torch.finfo(torch.float32).tiny)).max().item()
    if want.is_floating_point() or want.is_complex():
        row.cosine, row.argmax = cosine(got, want), argmax_kept(got, want)
    return row


def distance(got: torch.Tensor, want: torch.Tensor) -> torch.Tensor:
    """How far elements are apart: infinitely where one is no number and the other is another."""
    got, want = wide(got), wide(want)
    same = (got == want) | (got.isnan() & want.isnan())  # infinities of one sign are equal too
    return torch.where(same, 0.0, (got - want).abs()).nan_to_num(nan=float("inf"), posinf=float("inf"))


def _short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
