"""Slices with symbolic ends, views, expansions and rearrangements."""

from __future__ import annotations

from ..builder import Builder, Expression, NothingFits
from .registry import expression
from .sizes import number, positive


def at_axis(x: str, axis: int, index: str) -> str:
    return f"{x}[{':, ' * axis}{index}]"


@expression(3)
def sliced(b: Builder) -> Expression:
    x = b.pick(rank=(1, 4))
    axis = b.axis(x)
    n, k = b.size_of(x, axis), b.rng.randint(1, 4)
    ends = [
        f":{n} // 2",
        f"{n} // 2:",
        f":-{k}",
        f"-{k}:",
        f":{k}",
        f"{k}:",
        f"{k}:-{k}",
        f"{n} - {k}:",
        f":{b.size()}",
        f"-{b.size()}:",
        f":{number(b)}",
        f"{number(b)}:",
        "::2",
        "1::2",
        f"::{b.rng.randint(2, 3)}",
        f"{n} % {k + 1}:{n} - {n} % 2",
        f"max({n} - {k}, 0):{n}",
    ]
    return Expression(at_axis(x, axis, b.rng.choice(ends)), x in b.exact)


@expression(1)
def taken(b: Builder) -> Expression:
    """One row along an axis."""
    x = b.pick(rank=(1, 4))
    axis = b.axis(x)
    index = b.rng.choice(
        ["0", "-1", f"{b.size_of(x, axis)} - 1", f"{b.size_of(x, axis)} // 2", f"-({b.size()} // 3) - 1"]
    )
    forms = [at_axis(x, axis, index), f"{x}.select({axis}, {index})", f"{x}.narrow({axis}, 0, {positive(b)})"]
    return Expression(b.rng.choice(forms), x in b.exact)


@expression(2)
def rearranged(b: Builder) -> Expression:
    x = b.pick(rank=(1, 4))
    axis, other = b.axis(x), b.axis(x)
    n = b.size_of(x, axis)
    k = b.rng.randint(1, 4)
    forms = [
        f"{x}.transpose({axis}, {other})",
        f"{x}.flip({axis})",
        f"torch.roll({x}, {b.rng.choice([str(k), f'-{k}', f'{n} // 2', b.size()])}, {axis})",
        f"{x}.movedim({axis}, {other})",
        f"{x}.unsqueeze({axis})",
        f"{x}[None]",
        f"{x}[..., None]",
        f"{x}.contiguous()",
        f"{x}.clone()",
        f"{x}.mT" if len(b.shape(x)) > 1 else f"{x}[None, :]",
        f"{x}.swapaxes({axis}, {other})",
    ]
    return Expression(b.rng.choice(forms), x in b.exact)


@expression(1.5)
def flattened(b: Builder) -> Expression:
    x = b.pick(rank=(1, 4))
    rank = len(b.shape(x))
    sizes = [b.size_of(x, i) for i in range(rank)]
    forms = [f"{x}.flatten()", f"{x}.reshape(-1)", f"{x}.reshape({', '.join(sizes)}, 1)"]
    if rank >= 2:
        forms += [
            f"{x}.flatten(0, 1)",
            f"{x}.flatten(1)",
            f"{x}.reshape({sizes[0]}, -1)",
            f"{x}.reshape({sizes[0]} * {sizes[1]}, {', '.join(sizes[2:]) or '-1'})",
            f"{x}.contiguous().view(-1, {sizes[-1]})",
            f"{x}.transpose(0, 1).reshape(-1)",
            f"{x}.T.reshape({sizes[0]}, -1)" if rank == 2 else f"{x}.permute(2, 0, 1).flatten(1)",
        ]
    return Expression(b.rng.choice(forms), x in b.exact)


@expression(1)
def in_pieces(b: Builder) -> Expression:
    """An axis as two, of which one is a number or follows from sizes."""
    x = b.pick(rank=(1, 3))
    axis = b.axis(x)
    n, k = b.size_of(x, axis), b.rng.randint(2, 3)
    cut = at_axis(x, axis, f":{n} // {k} * {k}")
    forms = [
        f"{cut}.unflatten({axis}, ({k}, -1))",
        f"{cut}.unflatten({axis}, (-1, {k}))",
        f"{cut}.unflatten({axis}, ({n} // {k}, {k}))",
        f"F.pad({x}, (0, -{b.size_of(x, len(b.shape(x)) - 1)} % {k})).unflatten(-1, (-1, {k}))",
    ]
    return Expression(b.rng.choice(forms), x in b.exact)


@expression(1.2)
def repeated(b: Builder) -> Expression:
    x = b.pick(rank=(1, 3))
    rank = len(b.shape(x))
    ones = ", ".join("1" for _ in range(rank))
    axis = b.axis(x)
    kept = ", ".join("-1" for _ in range(rank))
    forms = [
        f"{x}.repeat({b.rng.choice(['2', positive(b)])}, {ones})",
        f"{x}.expand({positive(b)}, {kept})",
        f"{x}[None].expand({positive(b)}, {kept})",
        f"{x}.unsqueeze({axis}).expand({', '.join(['-1'] * axis + [positive(b)] + ['-1'] * (rank - axis))})",
        f"{x}.repeat_interleave({b.rng.choice(['2', '3', positive(b)])}, dim={axis})",
        f"torch.tile({x}, (2,))",
        f"{x}.unsqueeze({axis}).expand_as(torch.stack([{x}, {x}], {axis}))",
    ]
    return Expression(b.rng.choice(forms), x in b.exact)


@expression(1.2)
def padded(b: Builder) -> Expression:
    x = b.pick("float int", rank=(1, 3))
    n, k = b.size(), b.rng.randint(0, 3)
    width = b.rng.choice([f"({k}, 1)", f"(0, {n} % 4)", f"({n} // 2, {k})", f"(-1, {k + 1})", f"(0, -{n} % 3)"])
    if len(b.shape(x)) > 1 and b.chance(0.3):
        width = f"(0, 0, {n} // 3, {k})"
    forms = [f"F.pad({x}, {width})", f"F.pad({x}, {width}, value=1)"]
    if len(b.shape(x)) == 3 and "float" in str(b.of(x).dtype):
        forms += [f"F.pad({x}, (1, 1), mode='{mode}')" for mode in ("replicate", "reflect", "circular")]
    return Expression(b.rng.choice(forms), x in b.exact)


@expression(0.8)
def unfolded(b: Builder) -> Expression:
    x = b.pick(rank=(1, 3))
    axis = b.axis(x)
    k = b.rng.randint(1, 3)
    size = b.rng.choice([str(k), str(k), f"min({b.size_of(x, axis)}, {k})"])
    return Expression(f"{x}.unfold({axis}, {size}, {b.rng.randint(1, 3)})", x in b.exact)


@expression(0.8)
def diagonal(b: Builder) -> Expression:
    x = b.pick("float int", rank=(2, 3))
    k = b.rng.choice(["0", "1", "-1", f"{b.size()} - 2"])
    forms = [f"{x}.tril({k})", f"{x}.triu({k})", f"{x}.diagonal(0, -2, -1)", f"torch.diag_embed({x}[..., 0])"]
    return Expression(b.rng.choice(forms), x in b.exact)


@expression(0.7)
def squeezed(b: Builder) -> Expression:
    x = b.pick(rank=(1, 4))
    ones = [i for i, size in enumerate(b.shape(x)) if size == 1]
    if not ones:
        raise NothingFits
    axis = b.rng.choice(ones)
    return Expression(b.rng.choice([f"{x}.squeeze({axis})", f"{x}.squeeze()", f"{x}.squeeze(({axis},))"]), x in b.exact)
