"""Sorting, gathering and scattering."""

from __future__ import annotations

from ..builder import Builder, Expression
from .registry import expression
from .sizes import positive


def distinct(x: str) -> str:
    """Numbers of which no two are equal: what comes first among equals is not said."""
    return f"({x} + torch.arange({x}.shape[-1]) / 512)"


@expression(1)
def ordered(b: Builder) -> Expression:
    x = b.pick("float int", rank=(1, 3), exact=True)
    k = b.rng.randint(1, 2)
    end = b.rng.choice([str(k), f"min({k + 1}, {x}.shape[-1])", f"{x}.shape[-1] // 2 + 1"])
    forms = [
        f"{x}.sort(-1).values",
        f"{x}.sort(dim=-1, descending=True)[0]",
        f"{x}.sort(-1, stable=True).indices",
        f"torch.argsort({x}, -1, stable=True)",
        f"{x}.topk({end}).values",
        f"{x}.topk({end}, largest=False)[0]",
        f"{distinct(x)}.topk({end}).indices",
        f"{distinct(x)}.argsort(-1, descending=True)",
        f"{x}.kthvalue(1).values",
    ]
    return Expression(b.rng.choice(forms))


@expression(1.5)
def gathered(b: Builder) -> Expression:
    x = b.pick(rank=(1, 3))
    axis = b.axis(x)
    n = b.size_of(x, axis)
    forms = [
        f"{x}.index_select({axis}, torch.arange({n}) // 2)",
        f"{x}.index_select({axis}, torch.arange({n} - 1, -1, -1))",
        f"{x}.gather({axis}, torch.zeros_like({x}, dtype=torch.long))",
        f"{x}.gather({axis}, {distinct(x)}.argsort({axis}))" if x in b.exact and b.of(x).dtype.is_floating_point else x,
        f"{x}[torch.arange({b.size_of(x, 0)}), ..., -1]",
        f"{x}[..., torch.tensor([0, -1])]",
        f"torch.take_along_dim({x}, {x}.long().abs() % {n}, {axis})" if x in b.exact else f"{x}[[0, -1]]",
    ]
    for index in b.tensors("int", rank=(1, 2), exact=True):
        forms.append(f"{x}[{index} % {b.size_of(x, 0)}]")
    return Expression(b.rng.choice(forms), x in b.exact)


@expression(1)
def scattered(b: Builder) -> Expression:
    x = b.pick("float int", rank=(1, 3), exact=True)
    n = b.size_of(x, len(b.shape(x)) - 1)
    index = f"({x}.long().abs() % {n})"
    forms = [
        f"torch.zeros_like({x}).scatter_add(-1, {index}, {x})",
        f"{x}.scatter(-1, {index}, 1)",
        f"torch.zeros_like({x}).scatter_reduce(-1, {index}, {x}, reduce='amax')",
        f"{x}.index_add(-1, torch.arange({n}) // 2, {x})",
        f"{x}.index_fill(-1, torch.arange({n}) // 2, 3)",
        f"F.one_hot({x}.long().abs() % 4, 4)",
        f"torch.bincount({x}.long().abs().flatten() % 4, minlength=4)",
        f"{x}.index_copy(-1, torch.arange({n}).flip(0), {x})",
    ]
    return Expression(b.rng.choice(forms))


@expression(0.6)
def counted(b: Builder) -> Expression:
    """Results whose sizes the data decides, zero too."""
    x = b.pick("float int", rank=(1, 3), exact=True)
    k = b.rng.choice(["0", "1", "-1", "99"])
    forms = [
        f"{x}[{x} > {k}]",
        f"torch.nonzero({x} > {k})",
        f"torch.masked_select({x}, {x} > {k})",
        f"torch.where({x} > {k})[0]",
        f"torch.unique({x})",
        f"{x}[{x} > {k}].sum()",
        f"{x}[:0]",
        f"{x}.flatten()[{positive(b)} * 100:]",
    ]
    return Expression(b.rng.choice(forms))
