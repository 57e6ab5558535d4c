"""When two tensors count as equal, and how far apart they are."""

from __future__ import annotations

import torch

from .report import Row

_LOW = (torch.float16, torch.bfloat16)


def default_atol(dtypes: set[torch.dtype]) -> float:
    """1e-4 in float32, 1e-2 where anything is computed with ten bits or fewer."""
    return 1e-2 if dtypes & set(_LOW) else 1e-4


def allowed(want: torch.Tensor, atol: float, floor: float = 1.0) -> torch.Tensor:
    """What an element may differ by: `atol` times its own magnitude plus that of a usual element, at least `floor`.

    The usual one is the median, which a few elements of 1e38 in a mask do not move."""
    size = want.abs()
    return atol * (max(floor, _usual(size)) + torch.where(size.isfinite(), size, 0.0))


def _usual(size: torch.Tensor) -> float:
    finite = size[size.isfinite()]
    return finite.median().item() if finite.numel() else 0.0


def same_values(got: torch.Tensor, want: torch.Tensor, atol: float, floor: float = 1.0) -> bool:
    """Whether two tensors of one shape agree: numbers within the tolerance, the rest to the bit."""
    if not (want.is_floating_point() or want.is_complex()):
        return torch.equal(got, want)
    got, want = _wide(got), _wide(want)
    beyond = (got - want).abs() > allowed(want, atol, floor)
    differs = torch.where(got.isfinite() & want.isfinite(), beyond, (got != want) & ~(got.isnan() & want.isnan()))
    return not bool(differs.any())


def row_of(row: Row, got: torch.Tensor, want: torch.Tensor, atol: float) -> Row:
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
    row.ok = same_values(got, want, atol)
    if row.ok and want.dtype.is_floating_point and bool(want.isnan().any()):
        row.what = "NaN, as the model has"
    wide_got, wide_want = _wide(got), _wide(want)
    gap = (wide_got - wide_want).abs()
    agree = (wide_got == wide_want) | (wide_got.isnan() & wide_want.isnan())
    gap = torch.where(agree, torch.zeros_like(gap), torch.nan_to_num(gap, nan=float("inf"), posinf=float("inf")))
    row.absolute = gap.max().item()
    size = wide_want.abs()
    row.relative = (gap / size.nan_to_num(nan=1.0).clamp_min(max(_usual(size), 1e-12))).max().item()  # not of zeros
    if want.is_floating_point() and want.ndim and want.shape[-1] > 1:
        row.argmax = (got.argmax(-1) == want.argmax(-1)).double().mean().item()
    return row


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to(torch.complex128 if tensor.is_complex() else torch.float64)


def _short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
