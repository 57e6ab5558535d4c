"""Python numbers made of sizes, and conditions on them."""

from __future__ import annotations

from ..builder import Builder
from .registry import statement


def number(b: Builder) -> str:
    """An expression of sizes, of any sign."""
    n, k = b.size(), b.rng.randint(1, 9)
    forms = [
        f"{n} + {k}",
        f"{n} - {k}",
        f"{n} * {k}",
        f"{n} // {b.rng.randint(2, 4)}",
        f"({n} + {k}) // {b.rng.randint(2, 4)}",
        f"-(-{n} // {b.rng.randint(2, 5)})",
        f"{n} % {b.rng.randint(2, 5)}",
        f"-{n} % {b.rng.randint(2, 5)}",
        f"({k} - {n}) // {b.rng.randint(2, 4)}",
        f"min({n}, {k})",
        f"max({n}, {k})",
        f"min({n}, {b.size()})",
        f"max({n} - {b.size()}, 0)",
        f"{n} + {b.size()}",
        f"{n} * {b.size()}",
        f"abs({n} - {k})",
        f"int({n} * 0.5)",
        f"round({n} / 3)",
        f"int(math.sqrt({n}))",
        f"math.ceil({n} / {b.rng.randint(2, 4)})",
        f"int({n} ** 0.5 * 2)",
        f"({n} if {n} > {k} else {k})",
        f"({n} > {k}) + {n}",
        f"divmod({n}, {b.rng.randint(2, 4)})[{b.rng.randint(0, 1)}]",
        f"sum({b.pick(rank=(1, 5))}.shape)",
        f"{b.pick(rank=(0, 5))}.numel() // 2",
    ]
    return b.rng.choice(forms)


def positive(b: Builder) -> str:
    """A size that is no less than 1 and not large."""
    n = b.size()
    forms = [n, n, f"{n} // 2 + 1", f"max({n} - {b.rng.randint(1, 4)}, 1)", f"min({n}, {b.rng.randint(2, 9)})"]
    return b.rng.choice([*forms, f"({n} + {b.rng.randint(1, 3)}) // 2", f"{n} + {b.rng.randint(1, 3)}"])


def condition(b: Builder) -> str:
    """A question about sizes, such that it is not the same for all of them."""
    n, m = b.size(), b.size()
    value = int(b.first.value(n))
    near = max(value + b.rng.choice([-3, -2, -1, 0, 1, 2, 3, 8]), 0)
    forms = [
        f"{n} {b.rng.choice(['>', '>=', '<', '<=', '==', '!='])} {near}",
        f"{n} {b.rng.choice(['>', '<'])} {near}",
        f"{n} {b.rng.choice(['>', '<'])} {near}",
        f"{n} % {b.rng.choice([2, 3, 4])} == {b.rng.randint(0, 1)}",
        f"{n} {b.rng.choice(['>', '<', '==', '>='])} {m}",
        f"{n} + {m} > {near + b.rng.randint(0, 6)}",
        f"{n} * {m} < {near * 3 + 1}",
        f"min({n}, {m}) > {near}",
        f"max({n}, {m}) <= {near}",
        f"{n} // 2 > {near // 2}",
        f"{near} < {n} < {near + 4}",
        f"{n} > {near} and {m} % 2 == 0",
        f"{n} > {near} or {m} < {near}",
        f"not {n} > {near}",
        f"{n} in ({near}, {near + 1})",
        f"bool({n} - {near})",
        f"({n} - {near}) // 3 >= 0",
        f"{n} / 2 > {near / 2}",
    ]
    return b.rng.choice(forms)


@statement(1.5)
def name_a_number(b: Builder) -> bool:
    name = b.fresh("n")
    return b.add(f"{name} = {number(b)}", {name: True})


@statement(0.6)
def name_a_shape(b: Builder) -> bool:
    x = b.pick(rank=(2, 3))
    names = [b.fresh("n") for _ in b.shape(x)]
    form = b.rng.choice([f"{x}.shape", f"{x}.size()", f"list({x}.shape)"])
    return b.add(f"{', '.join(names)} = {form}", dict.fromkeys(names, True))
