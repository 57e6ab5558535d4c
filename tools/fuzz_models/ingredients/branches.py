"""Python branches on sizes, on data, on plain arguments and on what is there at all."""

from __future__ import annotations

from ..builder import Builder, NothingFits
from .registry import any_expression, statement
from .sizes import condition


@statement(9)
def assign(b: Builder) -> bool:
    made = any_expression(b)
    name = b.fresh()
    return b.add(f"{name} = {made.text}", {name: made.exact})


@statement(1)
def assign_again(b: Builder) -> bool:
    """A variable gets a new value; views of the old one keep the old."""
    made = any_expression(b)
    name = b.pick()
    return b.add(f"{name} = {made.text}", {name: made.exact})


@statement(1)
def helper(b: Builder) -> bool:
    """A function in the forward that closes over variables of it."""
    made = any_expression(b)
    name, function, n = b.fresh(), b.fresh("f"), b.size()
    lines = [f"def {function}(scale):", f"    return ({made.text}) * scale", f"{name} = {function}({n})"]
    return b.add("\n".join(lines), {name: made.exact})


def chosen(b: Builder, question: str) -> bool:
    """One value or another, in one of the forms in which models write it."""
    one, two, name = any_expression(b), any_expression(b), b.fresh()
    exact = one.exact and two.exact
    forms = [
        [f"if {question}:", f"    {name} = {one.text}", "else:", f"    {name} = {two.text}"],
        [f"{name} = {one.text}", f"if {question}:", f"    {name} = {two.text}"],
        [f"{name} = ({one.text}) if {question} else ({two.text})"],
        [f"{name} = {one.text}", f"if {question}:", f"    {name} = {name} * 2"],
        [f"{name} = {one.text}", f"if not ({question}):", f"    {name} = {name} - 1", "else:", "    pass"],
    ]
    return b.add("\n".join(b.rng.choice(forms)), {name: exact})


@statement(3)
def by_size(b: Builder) -> bool:
    return chosen(b, condition(b))


@statement(0.8)
def by_size_twice(b: Builder) -> bool:
    """Thresholds in each other, the first of which may change nothing."""
    one, two, three, name = any_expression(b), any_expression(b), any_expression(b), b.fresh()
    lines = [f"{name} = {one.text}", f"if {condition(b)}:", f"    {name} = {two.text}"]
    if b.chance(0.5):
        lines = [f"{name} = {one.text}", f"if {condition(b)}:", "    pass"]
    lines += [f"if {condition(b)}:", f"    {name} = {three.text}"]
    return b.add("\n".join(lines), {name: one.exact and two.exact and three.exact})


def question_of_data(b: Builder) -> str:
    x = b.pick("float int", exact=True)
    k = b.rng.choice(["0", "1", "2", "-1", "0.5"])
    forms = [
        f"{x}.max() > {k}",
        f"{x}.sum().item() > {k}",
        f"bool(({x} > {k}).any())",
        f"({x} == {k}).all()",
        f"int({x}.flatten()[0]) == {k}",
        f"{x}.flatten().tolist()[0] > {k}",
        f"{x}.min() < {k} and {x}.max() > {k}",
        f"float({x}.sum()) != {k}",
        f"not ({x} > {k}).any()",
        f"torch.any({x} < {k})",
        f"{x}.long().sum().item() % 2 == 0",
        f"{k} in {x}",
    ]
    return b.rng.choice(forms)


@statement(1.5)
def by_data(b: Builder) -> bool:
    return chosen(b, question_of_data(b))


@statement(1)
def number_of_data(b: Builder) -> bool:
    """A Python number that the data decides, used as a size or a place."""
    x, y = b.pick("int float", exact=True), b.pick(rank=(1, 3))
    name, out = b.fresh("k"), b.fresh()
    number = b.rng.choice(
        [
            f"{x}.long().abs().sum().item() % 5 + 1",
            f"int({x}.flatten()[0].abs() % 4) + 1",
            f"min(max({x}.long().flatten().tolist()[0], 1), 3)",
            f"int(({x} > 0).sum())",
            f"({x} > 0).sum().item() // 2",
            f"int({x}.long().max().clamp(1, 4))",
        ]
    )
    use = b.rng.choice(
        [
            f"{y}[:{name}]",
            f"{y}[-{name}:]",
            f"{y} * {name}",
            f"torch.arange({name} + 1)",
            f"torch.zeros({name}, 2)",
            f"{y}.repeat({name}, *[1] * {y}.dim())",
            f"{y} if {name} > 2 else {y} + 1",
            f"F.pad({y}, (0, {name}))",
            f"torch.roll({y}, {name}, 0)",
            f"{y} + ({name} > 1)",
            f"sum({y} for _ in range({name}))",
        ]
    )
    return b.add(f"{name} = {number}\n{out} = {use}", {name: True, out: y in b.exact})


@statement(1.5)
def by_argument(b: Builder) -> bool:
    """An argument that may be None, a flag, a number, a word."""
    plain = [name for name in b.names if name in ("power", "flag", "scale", "mode", "bias")]
    if not plain:
        raise NothingFits
    x, name, argument = b.pick("float"), b.fresh(), b.rng.choice(plain)
    forms = {
        "power": [f"{x} ** power", f"{x} * power", f"{x}[..., :power]", f"{x} if power == 2 else {x} + power"],
        "flag": [f"{x} if flag else -{x}", f"{x} * 2 if not flag else {x} + 1"],
        "scale": [f"{x} * scale", f"{x} / scale", f"{x} if scale > 0.3 else {x} - 1"],
        "mode": [f"{x}.sum(-1) if mode == 'sum' else {x}.amax(-1)", f"{{'sum': {x}, 'max': {x} * 2}}[mode]"],
        "bias": [f"{x} if bias is None else {x} + bias.sum()", f"{x} + (0 if bias is None else bias.mean())"],
    }
    text = b.rng.choice(forms[argument])
    return b.add(f"{name} = {text}", {name: False})


@statement(0.35)
def early_return(b: Builder) -> bool:
    made = any_expression(b)
    question = question_of_data(b) if b.chance(0.2) else condition(b)
    trial = f"_ = {made.text}\n_ = bool({question})"
    return b.add(f"if {question}:\n    return {made.text}", {}, trial)


@statement(0.25)
def refusal(b: Builder) -> bool:
    """A model that says itself which sizes it takes."""
    question = condition(b)
    if not all(bool(world.value(question)) for world in b.living()[:1]):
        raise NothingFits
    form = b.rng.choice([f"if not ({question}):\n    raise ValueError('size')", f"assert {question}"])
    return b.add(form, {})
