"""Whether two ways to draw random tensors have the same distribution, from many draws of each."""

from __future__ import annotations

from collections.abc import Callable

import torch

Draw = Callable[[], list[torch.Tensor]]
DRAWS = 300
# Of two samples of n draws, the greatest distance between the shares below any number exceeds c·√(2/n) with probability
# 2·exp(-2c²): 3e-6 for one element, of which a sample has dozens and the table ten thousands. What differs by chance in
# one of some hundred runs of all tests does not differ again in new draws.
_UNLIKELY = 2.6
_FEW = 40  # different values at most, which are then compared one by one
_OFTEN = 20  # what is drawn so often by one is drawn at least once by the other
_BOUNDS = {"rand": (0.0, 1.0), "exponential": (0.0, None), "log_normal": (0.0, None), "geometric": (1.0, None)}


def is_random(op: str, draw: Draw) -> bool:
    space, name, *overload = op.split(".")
    packet = getattr(getattr(torch.ops, space), name)
    if torch.Tag.nondeterministic_seeded not in getattr(packet, overload[0] if overload else "default").tags:
        return False
    before = torch.get_rng_state()
    first = draw()
    if torch.equal(torch.get_rng_state(), before):  # it drew nothing: a dropout of no share, say
        return False
    return any(not _identical(first, draw()) for _ in range(DRAWS))  # a coin may fall on one side most of the time


class NeverDrawn(Exception):
    """What no draws of the distribution are like, and once is enough to say so."""


def difference(op: str, ours: Draw, theirs: Draw) -> str:
    """What tells `ours` from `theirs`; empty where nothing does."""
    try:
        return _seems_different(op, ours, theirs) and _seems_different(op, ours, theirs)
    except NeverDrawn as found:
        return str(found)


def _seems_different(op: str, ours: Draw, theirs: Draw) -> str:
    got, want = ([draw() for _ in range(DRAWS)] for draw in (ours, theirs))
    if len(got[0]) != len(want[0]):
        raise NeverDrawn(f"{len(got[0])} results instead of {len(want[0])}")
    for i in range(len(want[0])):
        found = _of_one(op, [g[i] for g in got], [w[i] for w in want])
        if found:
            return f"result {i}: {found}"
    return ""


def _of_one(op: str, got: list[torch.Tensor], want: list[torch.Tensor]) -> str:
    for g, w in zip(got, want, strict=True):
        if g.dtype != w.dtype or g.shape != w.shape:
            raise NeverDrawn(f"{g.dtype}{list(g.shape)} instead of {w.dtype}{list(w.shape)}")
    if want[0].numel() == 0:
        return ""
    # What is beyond the largest number of fp16 is infinite in torch as well.
    largest = torch.finfo(want[0].dtype).max if want[0].dtype == torch.float16 else float("inf")
    ours, theirs = (torch.stack(draws).reshape(DRAWS, -1).double().clamp(-largest, largest) for draws in (got, want))
    if found := _outside(op, ours, theirs):
        raise NeverDrawn(found)
    return _values(ours, theirs) or _distribution(ours, theirs)


def _outside(op: str, ours: torch.Tensor, theirs: torch.Tensor) -> str:
    if not bool(ours.isfinite().all()):
        return "draws are not finite"
    name = op.split(".")[1].removesuffix("_like")
    low, high = _BOUNDS.get(name, (None, None))
    if low is not None and bool((ours < low).any()):
        return f"{ours.min().item()} is below {low}"
    if high is not None and bool((ours >= high).any()):
        return f"{ours.max().item()} is not below {high}"
    if name.startswith("randperm") and not torch.equal(ours.sort().values, theirs.sort().values):
        return "not a permutation"
    repeats = [_has_repeats(draws) for draws in (ours, theirs)]
    return "values repeat in a draw" if name == "multinomial" and repeats == [True, False] else ""


def _values(ours: torch.Tensor, theirs: torch.Tensor) -> str:
    """Of few different values, the same are drawn."""
    if len(theirs.unique()) <= _FEW:
        for some, others, word in ((ours, theirs, "is drawn"), (theirs, ours, "is not drawn")):
            values, counts = some.unique(return_counts=True)
            odd = [v for v in values[counts >= _OFTEN].tolist() if not bool((others == v).any())]
            if odd:
                return f"{odd[0]} {word}"
    return ""


def _has_repeats(draws: torch.Tensor) -> bool:
    ordered = draws.sort().values
    return bool((ordered[:, 1:] == ordered[:, :-1]).any())


def _distribution(ours: torch.Tensor, theirs: torch.Tensor) -> str:
    """All elements together, each by itself, and the means of draws, which tell whether elements are independent."""
    if _apart(ours.flatten(), theirs.flatten()):
        return f"{_facts(ours)} instead of {_facts(theirs)}"
    if _moments_apart(ours, theirs):
        return f"{_facts(ours)} instead of {_facts(theirs)}, by mean or variance"
    if _apart(ours.mean(1), theirs.mean(1)):
        return f"elements hang together: the means of draws have {_facts(ours.mean(1))}, not {_facts(theirs.mean(1))}"
    for i in range(ours.shape[1]):
        if _apart(ours[:, i], theirs[:, i]):
            return f"element {i}: {_facts(ours[:, i])} instead of {_facts(theirs[:, i])}"
    return ""


def _apart(ours: torch.Tensor, theirs: torch.Tensor) -> bool:
    """The test of Kolmogorov and Smirnov on two samples."""
    ours, theirs = ours.sort().values, theirs.sort().values
    every = torch.cat([ours, theirs])
    shares = [torch.searchsorted(sample, every, right=True) / len(sample) for sample in (ours, theirs)]
    return (shares[0] - shares[1]).abs().max().item() > _UNLIKELY * (1 / len(ours) + 1 / len(theirs)) ** 0.5


def _moments_apart(ours: torch.Tensor, theirs: torch.Tensor) -> bool:
    """Mean and mean square, of what lies between the outermost hundredths: a Cauchy distribution has neither."""
    ends = theirs.flatten().quantile(torch.tensor([0.01, 0.99], dtype=torch.float64))
    for power in (1, 2):
        a, b = (draws.clamp(ends[0], ends[1]).pow(power).mean(1) for draws in (ours, theirs))
        error = ((a.var() + b.var()) / len(a)).sqrt()
        if (a.mean() - b.mean()).abs() > 5.5 * error + 1e-6 * b.abs().max():
            return True
    return False


def _facts(draws: torch.Tensor) -> str:
    low, high = draws.min().item(), draws.max().item()
    return f"mean {draws.mean():.4g}, deviation {draws.std():.4g}, from {low:.4g} to {high:.4g}"


def _identical(some: list[torch.Tensor], others: list[torch.Tensor]) -> bool:
    return all(torch.allclose(a, b, rtol=0, atol=0, equal_nan=True) for a, b in zip(some, others, strict=True))
