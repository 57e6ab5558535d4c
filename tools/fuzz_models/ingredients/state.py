"""Buffers that are read, written and counted, and attributes that models keep."""

from __future__ import annotations

from ..builder import Builder
from .layers import fixed_last
from .registry import statement


@statement(0.7)
def table(b: Builder) -> bool:
    """A buffer that is only read, cut to a size."""
    x, width = fixed_last(b)
    kept, name = b.buffer(f"torch.arange(64 * {width}).reshape(64, {width}) % 7 / 4"), b.fresh()
    n = b.size_of(x, max(len(b.shape(x)) - 2, 0))
    forms = [f"{x} + {kept}[:{n}]", f"{x} * {kept}[{n}]", f"{x} + {kept}[-{n}:]", f"{kept}[:{n}].t().sum(0)"]
    return b.add(f"{name} = {b.rng.choice(forms)}", {name: x in b.exact})


@statement(0.35)
def counted(b: Builder) -> bool:
    kept, x, name = b.buffer(b.rng.choice(["torch.zeros(1)", "torch.tensor(0)"])), b.pick("float int"), b.fresh()
    count = b.rng.choice([f"{kept}.add_(1)", f"{kept} += 1", f"{kept} = {kept} + 1", f"{kept}.copy_({kept} + 2)"])
    lines = [count, f"{name} = {x} + {kept}"]
    if b.chance(0.4):
        lines.reverse()
    return b.add("\n".join(lines), {name: x in b.exact})


@statement(0.25)
def remembered(b: Builder) -> bool:
    """A buffer that takes on something of the input."""
    x, width = fixed_last(b)
    kept, name = b.buffer(f"torch.zeros({width})"), b.fresh()
    last = f"{x}.reshape(-1, {width})[-1]"
    write = b.rng.choice([f"{kept}.copy_({last})", f"{kept}[:1] = {last}[:1]", f"{kept}.mul_(0.5).add_({last})"])
    lines = [f"{name} = {x} + {kept}", write]
    if b.chance(0.4):
        lines.reverse()
    return b.add("\n".join(lines), {name: x in b.exact})


@statement(0.2)
def attribute(b: Builder) -> bool:
    """A Python number that the module keeps from call to call."""
    x, name, kept = b.pick("float int"), b.fresh(), b.fresh("seen")
    lines = [f"self.{kept} = getattr(self, '{kept}', 0) + 1", f"{name} = {x} * self.{kept}"]
    return b.add("\n".join(lines), {name: x in b.exact})
