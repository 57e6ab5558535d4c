"""Arithmetic element by element, between types, and by numbers."""

from __future__ import annotations

from ..builder import Builder, Expression
from .registry import expression
from .sizes import number


@expression(3)
def arithmetic(b: Builder) -> Expression:
    x = b.pick("float int")
    y = b.alike(x)
    exact = {x, y} <= b.exact
    return Expression(f"{x} {b.rng.choice(['+', '-', '*'])} {y}", exact)


@expression(2)
def with_a_number(b: Builder) -> Expression:
    x = b.pick("float int")
    k = b.rng.choice(["2", "-1", "0.5", "1.5", "3", "True"])
    forms = [f"{x} {b.rng.choice(['+', '-', '*'])} {k}", f"{k} {b.rng.choice(['+', '-', '*'])} {x}"]
    return Expression(b.rng.choice(forms), x in b.exact)


@expression(1.5)
def with_a_size(b: Builder) -> Expression:
    x = b.pick("float int")
    n = number(b)
    forms = [f"{x} + {n}", f"{x} * ({n})", f"{x} - ({n})", f"torch.where({x} > 0, {x}, {n})"]
    return Expression(b.rng.choice(forms), x in b.exact)


@expression(0.7)
def divided_by_a_size(b: Builder) -> Expression:
    x, n = b.pick("float int"), b.size()
    forms = [f"{x} / {n}", f"{x} * {n} ** -0.5", f"{x} / math.sqrt({n})", f"{x} * (1.0 / {n})", f"{x} * float({n})"]
    return Expression(b.rng.choice(forms), False)


@expression(1)
def smooth(b: Builder) -> Expression:
    x = b.pick("float")
    forms = [
        f"torch.tanh({x})",
        f"torch.sigmoid({x})",
        f"F.gelu({x})",
        f"F.silu({x})",
        f"F.softplus({x})",
        f"torch.sin({x})",
        f"torch.exp({x}.clamp(-4, 4))",
        f"torch.log1p({x}.abs())",
        f"torch.rsqrt({x} ** 2 + 1)",
        f"F.leaky_relu({x}, 0.1)",
        f"F.elu({x})",
    ]
    return Expression(b.rng.choice(forms), False)


@expression(1.5)
def bent(b: Builder) -> Expression:
    x = b.pick("float int", exact=True)
    forms = [
        f"{x}.relu()",
        f"{x}.abs()",
        f"-{x}",
        f"{x}.clamp(-1, 2)",
        f"{x}.clamp(min=0)",
        f"{x} ** 2",
        f"{x}.sign()",
        f"F.relu6({x})",
        f"F.hardtanh({x})",
        f"torch.square({x})",
        f"torch.pow({x}, 2)",
        f"2 * {x} - {x}",
    ]
    return Expression(b.rng.choice(forms))


@expression(1.2)
def whole_division(b: Builder) -> Expression:
    x = b.pick("int float", exact=True)
    k = b.rng.choice([2, 3, -2, -3])
    n = b.size()
    forms = [
        f"{x} // {k}",
        f"{x} % {k}",
        f"torch.div({x}, {k}, rounding_mode='trunc')",
        f"torch.div({x}, {k}, rounding_mode='floor')",
        f"torch.remainder({x}, {k})",
        f"torch.fmod({x}, {k})",
        f"{x} // ({n} + 1)",
        f"{x} % ({n} + 1)",
        f"{k} // ({x}.abs() + 1)",
        f"{x} / {abs(k)}",
    ]
    text = b.rng.choice(forms)
    return Expression(text, " / " not in text)


@expression(1.5)
def cast(b: Builder) -> Expression:
    x = b.pick("float int bool", exact=True)
    forms = [
        f"{x}.long()",
        f"{x}.to(torch.int32)",
        f"{x}.int()",
        f"{x}.float()",
        f"{x}.double()",
        f"{x}.bool()",
        f"{x}.half()",
        f"{x}.to(torch.int16)",
        f"{x}.to(torch.int8)",
        f"({x}.abs() % 100).to(torch.uint8)",
        f"{x}.floor().long()",
        f"{x}.round()",
        f"{x}.trunc()",
        f"{x}.ceil().to(torch.int32)",
        f"{x}.type_as({b.pick('float int')})",
    ]
    return Expression(b.rng.choice(forms))


@expression(1.2)
def compared(b: Builder) -> Expression:
    x = b.pick("float int", exact=True)
    k = b.rng.choice(["0", "1", "0.5", "-1", b.size()])
    return Expression(f"{x} {b.rng.choice(['>', '<', '>=', '<=', '==', '!='])} {k}")


@expression(0.8)
def logical(b: Builder) -> Expression:
    x = b.pick("bool")
    forms = [f"~{x}", f"{x}.logical_not()", f"{x} ^ True", f"{x} + 1", f"{x} * 2.5", f"{x}.int() - 1"]
    others = [y for y in b.tensors("bool") if y != x and b.agree(f"{x} & {y}")]
    if others:
        y = b.rng.choice(others)
        forms += [f"{x} & {y}", f"{x} | {y}", f"torch.logical_xor({x}, {y})"]
    return Expression(b.rng.choice(forms))


@expression(1)
def chosen(b: Builder) -> Expression:
    x = b.pick("float int")
    forms = []
    for mask in b.tensors("bool"):
        if b.agree(f"torch.where({mask}, {x}, 0)"):
            forms += [f"torch.where({mask}, {x}, {k})" for k in ("0", "-1.5", f"{x} + 1")]
        if b.agree(f"{x}.masked_fill({mask}, 0)"):
            forms += [f"{x}.masked_fill({mask}, {k})" for k in ("0", "-2")]
    if not forms:
        forms = [f"torch.where({x} > 0.1, {x}, -{x})"] if x in b.exact else [f"{x} * 1"]
    return Expression(b.rng.choice(forms), x in b.exact)


@expression(0.8)
def bits(b: Builder) -> Expression:
    x = b.pick("int")
    k = b.rng.randint(1, 3)
    return Expression(b.rng.choice([f"{x} & {k}", f"{x} | {k}", f"{x} ^ {k}", f"{x} << {k}", f"{x} >> {k}", f"~{x}"]))


@expression(0.8)
def two_types(b: Builder) -> Expression:
    x, y = b.pick("float int bool"), b.pick("float int bool")
    if not b.agree(f"torch.maximum({x}, {y})"):
        return Expression(f"{x} + {x}.sum().to({b.rng.choice(['torch.float64', 'torch.int32'])})", False)
    return Expression(f"torch.{b.rng.choice(['maximum', 'minimum'])}({x}, {y})", {x, y} <= b.exact)
