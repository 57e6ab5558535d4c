"""Pieces put together and taken apart, and tensors made of sizes alone."""

from __future__ import annotations

from ..builder import Builder, Expression
from .registry import expression, statement
from .sizes import number, positive


@expression(1.5)
def joined(b: Builder) -> Expression:
    x = b.pick(rank=(1, 4))
    axis = b.axis(x)
    others = [y for y in b.tensors(rank=(1, 4)) if b.agree(f"torch.cat([{x}, {y}], {axis})")]
    # A tensor may have lost its size in a branch, so that it does not even agree with itself.
    y = b.rng.choice(others or [x])
    stackable = [z for z in others if b.agree(f"torch.stack([{x}, {z}])")]
    z = b.rng.choice(stackable or [x])
    forms = [
        (f"torch.cat([{x}, {y}], {axis})", y),
        (f"torch.cat(({y}, {x}, {y}), dim={axis})", y),
        (f"torch.stack([{x}, {z}], {axis})", z),
        (f"torch.cat([{x}, torch.zeros_like({x})], {axis})", x),
        (f"torch.hstack([{x}, {x}])", x),
    ]
    text, other = b.rng.choice(forms)
    return Expression(text, {x, other} <= b.exact)


@expression(1.2)
def a_piece(b: Builder) -> Expression:
    x = b.pick(rank=(1, 4))
    axis = b.axis(x)
    n, k = b.size_of(x, axis), b.rng.randint(2, 3)
    forms = [
        f"{x}.chunk({k}, {axis})[0]",
        f"{x}.chunk({k}, {axis})[-1]",
        f"torch.split({x}, {k}, {axis})[0]",
        f"torch.split({x}, {k}, {axis})[-1]",
        f"{x}.split([{n} // 2, {n} - {n} // 2], {axis})[{b.rng.randint(0, 1)}]",
        f"{x}.split([1, {n} - 1], dim={axis})[1]",
        f"torch.tensor_split({x}, {k}, {axis})[1]",
        f"{x}.unbind({axis})[0]",
        f"{x}.unbind({axis})[-1]",
    ]
    return Expression(b.rng.choice(forms), x in b.exact)


@statement(0.6)
def two_pieces(b: Builder) -> bool:
    x = b.pick(rank=(1, 4))
    axis = b.axis(x)
    one, two = b.fresh(), b.fresh()
    n = b.size_of(x, axis)
    form = b.rng.choice([f"{x}.split([{n} // 2, {n} - {n} // 2], {axis})", f"{x}.chunk(2, dim={axis})"])
    return b.add(f"{one}, {two} = {form}", dict.fromkeys((one, two), x in b.exact))


@expression(1.5)
def made_of_sizes(b: Builder) -> Expression:
    n, m = positive(b), positive(b)
    x = b.pick("float int")
    forms = [
        f"torch.arange({n})",
        f"torch.arange({n}, dtype=torch.float32)",
        f"torch.arange({b.rng.randint(1, 3)}, {n} + 3)",
        f"torch.arange(0, {n} + 1, {b.rng.randint(2, 3)})",
        f"torch.arange({n} - 1, -1, -1)",
        f"torch.zeros({n}, {m})",
        f"torch.ones({n}, dtype=torch.bool)",
        f"torch.full(({n},), {number(b)})",
        f"torch.full(({n}, {m}), 0.5)",
        f"torch.ones({n}, {n}).tril()",
        f"torch.eye({n})",
        f"torch.tensor([{number(b)}, 3])",
        f"torch.tensor({number(b)})",
        f"{x}.new_zeros({n}, 2)",
        f"{x}.new_full(({n},), 2)",
        f"torch.ones_like({x}) * ({number(b)})",
        f"torch.linspace(0, {b.rng.randint(1, 4)}, {n})",
        f"torch.as_tensor({number(b)}, dtype=torch.float32)",
    ]
    text = b.rng.choice(forms)
    return Expression(text, "linspace" not in text)


@expression(1)
def relative(b: Builder) -> Expression:
    n, m = positive(b), positive(b)
    forms = [
        f"torch.arange({n})[:, None] - torch.arange({m})[None, :]",
        f"torch.arange({n}).unsqueeze(1) >= torch.arange({m})",
        f"(torch.arange({n})[:, None] // 2 == torch.arange({m}) // 2)",
        f"torch.meshgrid(torch.arange({n}), torch.arange({m}), indexing='ij')[{b.rng.randint(0, 1)}]",
        f"torch.outer(torch.arange({n}).float(), torch.arange({m}).float())",
    ]
    return Expression(b.rng.choice(forms))
