"""Layers of torch.nn."""

from __future__ import annotations

from ..builder import Builder, Expression, NothingFits
from .registry import expression


def fixed_last(b: Builder, rank: tuple[int, int] = (1, 4)) -> tuple[str, int]:
    """A float32 tensor whose last size is the same in every world, and that size."""
    found = [x for x in b.tensors("float", rank) if b.is_fixed(x, -1) and str(b.of(x).dtype) == "torch.float32"]
    if not found:
        raise NothingFits
    x = b.rng.choice(found)
    return x, b.shape(x)[-1]


@expression(2)
def linear(b: Builder) -> Expression:
    x, width = fixed_last(b)
    out = b.rng.randint(2, 4)
    layer = b.module(f"nn.Linear({width}, {b.rng.choice([width, out])}, bias={b.chance(0.5)})")
    return Expression(f"{layer}({x})", x in b.exact)


@expression(1)
def normalized(b: Builder) -> Expression:
    x, width = fixed_last(b)
    layer = b.module(b.rng.choice([f"nn.LayerNorm({width})", f"nn.RMSNorm({width})"]))
    forms = [f"{layer}({x})", f"{x} * torch.rsqrt({x}.pow(2).mean(-1, keepdim=True) + 1e-5)"]
    return Expression(b.rng.choice(forms), False)


@expression(1.5)
def embedded(b: Builder) -> Expression:
    x = b.pick("int", rank=(1, 3), exact=True)
    layer = b.module(f"nn.Embedding(10, {b.rng.randint(2, 4)})")
    forms = [f"{layer}({x}.abs() % 10)", f"{layer}({x}.long().clamp(0, 9))"]
    n = b.size()
    return Expression(b.rng.choice([*forms, f"{layer}(torch.arange({n}) % 10)", f"{layer}.weight[:{n}]"]))


@expression(1)
def convolved(b: Builder) -> Expression:
    x, width = fixed_last(b, (3, 3))
    kernel, stride = b.rng.randint(1, 3), b.rng.randint(1, 2)
    padding = b.rng.choice(["0", "1", "'same'" if stride == 1 else "2"])
    layer = b.module(f"nn.Conv1d({width}, {width}, {kernel}, stride={stride}, padding={padding})")
    forms = [f"{layer}({x}.transpose(1, 2)).transpose(1, 2)", f"{layer}({x}.mT)"]
    return Expression(b.rng.choice(forms), x in b.exact)


@expression(0.5)
def pooled(b: Builder) -> Expression:
    x = b.pick("float", rank=(3, 3))
    forms = [
        f"F.max_pool1d({x}, 2)",
        f"F.max_pool1d({x}, 2, stride=1, padding=1)",
        f"F.max_pool1d({x}, 2, ceil_mode=True)",
    ]
    forms += [f"F.interpolate({x}, scale_factor=2)", f"F.interpolate({x}, size={b.size()})", f"F.glu({x}, 1)"]
    return Expression(b.rng.choice(forms), x in b.exact)
