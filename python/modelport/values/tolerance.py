"""When two tensors have the same values: the one notion of it that captures, artifacts and trials at other sizes share.

An element may differ by `atol` × (the output's scale + its own magnitude). The scale is the root mean square of the
output itself, so that probabilities of 1e-5 and a normalised embedding are held to their own size, not to 1."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import torch

# Measured on the zoo in onnxruntime. In float32, 30 models of every kind differ by 1.3e-5 at most. Where results are
# rounded to 11 or 8 bits, a few elements are far off and the whole is not: 32 of 35 runs in fp16 and bf16 differ by at
# most 0.12 and 0.22, with cosines from 0.9992.
_ATOL = {torch.float32: 1e-4, torch.float16: 0.15, torch.bfloat16: 0.25}
_COSINE = {torch.float16: 0.999, torch.bfloat16: 0.999}
_SAME_CHOICE = 0.99  # the cosine that is enough where the largest value is at the same place everywhere
# A mask is a number that stands alone, far above all others: -1e4, -65504, -1e9, the lowest number of a type.
_MASK_FROM = 1e4
_MASK_GAP = 1e3
_FLUSHED = 2.0**-126  # vectorized kernels turn what is smaller into zero


@dataclasses.dataclass(frozen=True)
class Tolerance:
    """`cosine` is what low precision has to keep besides: single elements say little where each is rounded coarsely."""

    atol: float
    cosine: float | None = None

    @staticmethod
    def of(dtypes: Iterable[torch.dtype], atol: float | None = None) -> Tolerance:
        """That of the coarsest type among these; `atol` is what the user asked for instead of its default."""
        coarsest = max(dtypes, key=lambda dtype: _ATOL.get(dtype, 0.0), default=torch.float32)
        usual = _ATOL.get(coarsest, _ATOL[torch.float32])
        return Tolerance(usual if atol is None else atol, _COSINE.get(coarsest))


def same_values(got: torch.Tensor, want: torch.Tensor, tolerance: Tolerance | float | None = None) -> bool:
    """Whether two tensors agree in type and shape, and in numbers within the tolerance; integers, booleans, infinities
    and NaN to the bit. Without a tolerance it is the one for the type."""
    if got.dtype != want.dtype or got.shape != want.shape:
        return False
    if not (want.is_floating_point() or want.is_complex()):
        return torch.equal(got, want)
    if want.dtype in _ATOL and torch.equal(got, want):  # as most are: a graph and its model call the same kernels
        return True
    if not isinstance(tolerance, Tolerance):
        tolerance = Tolerance.of({want.dtype}, tolerance)
    ours, wanted = wide(got), wide(want)
    numbers = ours.isfinite() & wanted.isfinite()
    beyond = (ours - wanted).abs() > allowed(want, tolerance.atol)
    differs = torch.where(numbers, beyond, (ours != wanted) & ~(ours.isnan() & wanted.isnan()))
    return not bool(differs.any()) and keeps_direction(got, want, tolerance.cosine)


def allowed(want: torch.Tensor, atol: float) -> torch.Tensor:
    """What each element may differ by. Of a result that is zero throughout, nothing but what underflows."""
    size = wide(want).abs()
    smallest = 0.0
    if want.is_floating_point():
        info = torch.finfo(want.dtype)
        smallest = 2 * max(info.smallest_normal * info.eps, _FLUSHED)  # fp16 has steps of 6e-8 near zero
    return atol * (scale(want) + torch.where(size.isfinite(), size, 0.0)) + smallest


def scale(want: torch.Tensor) -> float:
    """The root mean square of the finite elements that are no mask."""
    size = wide(want).abs()
    size = size[_counts(size)]
    return size.square().mean().sqrt().item() if size.numel() else 0.0


def keeps_direction(got: torch.Tensor, want: torch.Tensor, least: float | None) -> bool:
    """Whether low precision left the whole as it was: its direction, or else nearly so and what is chosen by it."""
    if least is None:
        return True
    alike = cosine(got, want)
    return alike is None or alike >= least or (alike >= _SAME_CHOICE and argmax_kept(got, want) == 1)


def cosine(got: torch.Tensor, want: torch.Tensor) -> float | None:
    """Between both as one vector each, without masks; None where one is zero, of which elements alone can tell."""
    ours, wanted = wide(got).flatten(), wide(want).flatten()
    both = ours.isfinite() & _counts(wanted.abs())
    ours, wanted = ours[both], wanted[both]
    length = ours.norm() * wanted.norm()
    return ((ours * wanted.conj()).sum().real / length).item() if length > 0 else None


def argmax_kept(got: torch.Tensor, want: torch.Tensor) -> float | None:
    """The share of positions whose largest value along the last axis is at the same place."""
    if not want.is_floating_point() or not want.ndim or want.shape[-1] < 2 or not want.numel():
        return None
    return (got.argmax(-1) == want.argmax(-1)).double().mean().item()


def _counts(size: torch.Tensor) -> torch.Tensor:
    """Which magnitudes belong to the output's scale: finite, and no mask."""
    finite = size.isfinite()
    if not bool((finite & (size >= _MASK_FROM)).any()):
        return finite
    ordered = size[finite].sort().values
    ordered = ordered[ordered > 0]
    gaps = (ordered[1:] >= _MASK_GAP * ordered[:-1]) & (ordered[1:] >= _MASK_FROM)
    if bool(gaps.any()):
        return finite & (size < ordered[1:][gaps][0])
    alone = ordered[0] >= _MASK_FROM and bool((size == 0).any())  # zeros and one kind of mask, as a bias has
    return finite & (size == 0) if alone else finite


def wide(tensor: torch.Tensor) -> torch.Tensor:
    """In double precision: what the difference of two numbers is, no matter how it is rounded."""
    return tensor.to(torch.complex128 if tensor.is_complex() else torch.float64)
