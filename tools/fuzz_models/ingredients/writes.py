"""Writes in place, into tensors and into views of them."""

from __future__ import annotations

from ..builder import Builder, NothingFits
from .registry import any_expression, statement
from .shaping import at_axis


def owned(b: Builder, kind: str = "float int", rank: tuple[int, int] = (1, 3)) -> str:
    """A tensor to write to; now and then an input itself, which the caller then sees."""
    x = b.pick(kind, rank)
    if b.chance(0.1):
        return x
    name = b.fresh()
    if not b.add(f"{name} = {x}.clone()", {name: x in b.exact}):
        raise NothingFits
    return name


def part(b: Builder, x: str) -> str:
    """Text of a view of `x`."""
    axis = b.axis(x)
    n, k = b.size_of(x, axis), b.rng.randint(1, 3)
    slices = [f":{n} // 2", f"{n} // 2:", f":{k}", f"-{k}:", f"{k}:", "::2", "0", "-1", f":{n} - {k}", f"{n} // 2", ":"]
    forms = [
        at_axis(x, axis, b.rng.choice(slices)),
        at_axis(x, axis, b.rng.choice(slices)),
        f"{x}.transpose(0, {axis})[:{k}]",
        f"{x}.narrow({axis}, 0, {n} // 2 + 1)",
        f"{x}.select({axis}, 0)",
        f"{x}.view(-1)[:{k}]",
        f"{x}.flatten()[::2]",
        f"{x}.unsqueeze({axis})",
        f"{x}.chunk(2, {axis})[0]",
        f"{x}.split({k}, {axis})[-1]",
        f"{x}.unbind({axis})[0]",
        f"{x}.mT" if len(b.shape(x)) > 1 else x,
        f"{x}.diagonal()" if len(b.shape(x)) == 2 else f"{x}[...]",
        f"{x}.movedim(0, -1)[..., 0]",
        f"{x}.view({x}.shape)",
        f"{x}.unfold({axis}, 1, 2)",
    ]
    return b.rng.choice(forms)


@statement(2)
def through_a_view(b: Builder) -> bool:
    x = owned(b)
    view, name = part(b, x), b.fresh()
    k = b.rng.choice(["1", "2", "-3", b.size()])
    forms = [
        f"{view}.add_({k})" if "[" not in view[-3:] else f"{view} += {k}",
        f"{name} = {view}\n{name} += {k}",
        f"{name} = {view}\n{name}.mul_({k})",
        f"{name} = {view}\n{name}.fill_({k})",
        f"{name} = {view}\n{name}.zero_()",
        f"{name} = {view}\n{name}.copy_({name} * 2)",
        f"{name} = {view}\n{x}.add_({k})",
        f"{name} = {view}\n{x}.mul_(2)\n{name}.add_(1)",
        f"{name} = {view}\n{name}[...] = {k}",
        f"{name} = {view} + 1\n{x}.sub_({name}.sum().to({x}.dtype))",
        f"{name} = {x}\n{view}.clamp_(min=0)",
    ]
    text = b.rng.choice(forms)
    made = {name: x in b.exact} if f"{name} = " in text else {}
    return b.add(text, {x: x in b.exact, **made})


@statement(1.2)
def item_assignment(b: Builder) -> bool:
    x = owned(b)
    axis = b.axis(x)
    n, k = b.size_of(x, axis), b.rng.randint(1, 3)
    where = at_axis(
        x, axis, b.rng.choice([f":{n} // 2", f"{k}:", f"-{k}:", "::2", "0", "-1", f"{n} - 1", f":{b.size()}"])
    )
    value = b.rng.choice(["0", "1.5", "-1", f"{where} * 2", f"{where}.flip(0)", b.size(), f"{x}.sum().to({x}.dtype)"])
    return b.add(f"{where} = {value}", {x: x in b.exact})


@statement(1)
def by_index(b: Builder) -> bool:
    x = owned(b)
    n, k = b.size_of(x, 0), b.rng.randint(1, 3)
    one = f"torch.ones((), dtype={x}.dtype)"
    forms = [
        f"{x}.index_put_((torch.arange({n}) // 2,), {one})",
        f"{x}.index_put_((torch.arange({n}) // 2,), {one}, accumulate=True)",
        f"{x}[torch.tensor([0, -1])] = {k}",
        f"{x}[torch.arange(0, {n}, 2)] += {k}",
        f"{x}.masked_fill_({x} > 0, {k})",
        f"{x}[{x} > 0] = {k}",
        f"{x}[{x} < 0] += 1",
        f"{x}[{x} < 0] *= -1",
        f"{x}.index_fill_(0, torch.arange({n} // 2), {k})",
        f"{x}.index_add_(0, torch.arange({n}).flip(0), {x}.clone())",
        f"{x}.scatter_(0, torch.zeros_like({x}, dtype=torch.long), {k})",
        f"{x}.index_copy_(0, torch.arange({n}), {x}.flip(0))",
        f"{x}.masked_scatter_({x} > 0, {x}.flip(0).contiguous())",
        f"{x}.relu_()",
        f"{x}.neg_()",
        f"{x}.clamp_(-1, 1)",
        f"{x}.cumsum_(0)",
        f"{x}.tril_()" if len(b.shape(x)) > 1 else f"{x}.abs_()",
        f"{x}.fill_diagonal_({k})" if len(b.shape(x)) == 2 else f"{x}.sub_({k})",
        f"{x}.transpose_(0, -1)",
        f"{x}.unsqueeze_(0)",
        f"{x} //= 2",
    ]
    text = b.rng.choice(forms)
    if x not in b.exact and (">" in text or "<" in text or "//= " in text):
        raise NothingFits
    return b.add(text, {x: x in b.exact})


@statement(0.8)
def from_another(b: Builder) -> bool:
    """The values of one tensor are written into another of another type or a larger shape."""
    made, x = any_expression(b), b.fresh()
    n = b.size()
    forms = [
        f"{x} = torch.zeros_like({made.text})\n{x}.copy_({made.text})",
        f"{x} = torch.zeros(({made.text}).shape, dtype=torch.int64)\n{x} += 2\n{x}[:{n} // 2] = 5",
        f"{x} = torch.empty_like({made.text}).fill_(2)\n{x}[1:] = ({made.text})[1:]",
        f"{x} = torch.zeros({n} + 2, *({made.text}).shape[1:])\n{x}[:len({made.text})] = {made.text}",
        f"{x} = ({made.text}).clone()\n{x}[:1] = {x}[-1:]",
        f"{x} = ({made.text}).clone()\n{x}[:-1] = {x}[1:].clone()",
    ]
    return b.add(b.rng.choice(forms), {x: made.exact})
