"""Sums and their kind over symbolic axes, and running sums."""

from __future__ import annotations

from ..builder import Builder, Expression
from .registry import expression


@expression(2)
def reduced(b: Builder) -> Expression:
    x = b.pick("float int", rank=(1, 4))
    axis = b.axis(x)
    keep = b.rng.choice(["", ", keepdim=True"])
    forms = [f"{x}.sum({axis}{keep})", f"{x}.sum()", f"{x}.amax({axis}{keep})", f"{x}.amin(dim={axis}{keep})"]
    forms += [
        f"{x}.max({axis}).values",
        f"{x}.sum(dim=(0, -1))",
        f"{x}.max()",
        f"torch.sum({x}, -1, dtype=torch.float64)",
    ]
    return Expression(b.rng.choice(forms), x in b.exact)


@expression(1)
def averaged(b: Builder) -> Expression:
    x = b.pick("float", rank=(1, 4))
    axis = b.axis(x)
    keep = b.rng.choice(["", ", keepdim=True"])
    n = b.size_of(x, axis)
    forms = [
        f"{x}.mean({axis}{keep})",
        f"{x}.mean()",
        f"{x}.sum({axis}{keep}) / {n}",
        f"{x}.softmax({axis})",
        f"F.log_softmax({x}, dim={axis})",
        f"{x}.var({axis}, unbiased=False{keep})",
        f"{x}.logsumexp({axis}{keep})",
        f"{x}.norm(dim={axis}{keep})",
        f"F.normalize({x}, dim={axis})",
        f"F.avg_pool1d({x}, 2)" if len(b.shape(x)) == 3 else f"{x}.mean(-1{keep})",
        f"F.adaptive_avg_pool1d({x}, 2)" if len(b.shape(x)) == 3 else f"{x}.mean(0{keep})",
    ]
    return Expression(b.rng.choice(forms), False)


@expression(1)
def placed(b: Builder) -> Expression:
    x = b.pick("float int", rank=(1, 4), exact=True)
    axis = b.axis(x)
    forms = [
        f"{x}.argmax({axis})",
        f"{x}.argmin({axis}, keepdim=True)",
        f"{x}.flatten().argmax()",
        f"({x} > 0).sum({axis})",
        f"({x} > 0).any({axis})",
        f"({x} != 0).all()",
        f"torch.count_nonzero({x}, {axis})",
        f"{x}.prod({axis})",
    ]
    return Expression(b.rng.choice(forms))


@expression(1)
def running(b: Builder) -> Expression:
    x = b.pick("float int bool", rank=(1, 4))
    axis = b.axis(x)
    forms = [f"{x}.cumsum({axis})", f"{x}.cumsum({axis}, dtype=torch.float32)", f"{x}.flip({axis}).cumsum({axis})"]
    forms += [f"torch.cummax({x}, {axis}).values", f"{x}.diff(dim={axis})", f"{x}.cumsum({axis}) - {x}.long()"]
    return Expression(b.rng.choice(forms), x in b.exact)


@expression(1)
def products(b: Builder) -> Expression:
    x = b.pick("float", rank=(2, 4))
    others = [y for y in b.tensors("float", rank=(1, 4)) if b.agree(f"{x} @ {y}")]
    turned = [y for y in b.tensors("float", rank=(2, 4)) if b.agree(f"{x} @ {y}.mT")]
    forms = [f"{x} @ {y}" for y in others] + [f"{x} @ {y}.mT" for y in turned]
    forms.append(f"torch.einsum('...ij,...kj->...ik', {x}, {x})")
    text = b.rng.choice(forms)
    return Expression(text, all(name in b.exact for name in [x, *others, *turned]))
