"""Loops over sizes and over rows."""

from __future__ import annotations

from ..builder import Builder
from .registry import statement
from .sizes import positive


@statement(1)
def over_a_size(b: Builder) -> bool:
    x = b.pick("float int", rank=(1, 3))
    axis, name = b.axis(x), b.fresh()
    n = b.size_of(x, axis)
    row = f"{x}.select({axis}, i)"
    bodies = [
        [
            f"{name} = torch.zeros_like({x}.select({axis}, 0))",
            f"for i in range({n}):",
            f"    {name} = {name} + {row} * i",
        ],
        [f"{name} = {x}.select({axis}, 0)", f"for i in range(1, {n}):", f"    {name} = torch.maximum({name}, {row})"],
        [f"{name} = 0", f"for i in range({n}):", f"    {name} = {name} + {row}"],
        [f"rows = [{row} + i for i in range({n})]", f"{name} = torch.stack(rows, {axis})"],
        [f"{name} = torch.stack([{row} for i in reversed(range({n}))])"],
        [f"{name} = sum({row} * (i % 2) for i in range({n}))"],
        [
            "rows = []",
            f"for i in range(0, {n}, 2):",
            f"    rows.append({x}.narrow({axis}, i, 1))",
            f"{name} = torch.cat(rows, {axis})",
        ],
    ]
    return b.add("\n".join(b.rng.choice(bodies)), {name: x in b.exact})


@statement(1)
def over_rows(b: Builder) -> bool:
    x, name = b.pick("float int", rank=(1, 3)), b.fresh()
    bodies = [
        [f"{name} = 0", f"for row in {x}:", f"    {name} = {name} + row"],
        [f"{name} = torch.stack([row * 2 for row in {x}])"],
        [f"{name} = {x}[0]", f"for row in {x}[1:]:", f"    {name} = torch.minimum({name}, row)"],
        [f"{name} = torch.stack([row + i for i, row in enumerate({x})])"],
        [f"{name} = sum(a - c for a, c in zip({x}, {x}.flip(0)))"],
        [f"{name} = torch.cat([piece.flip(0) for piece in {x}.split(2)])"],
        [f"{name} = torch.cat([piece * i for i, piece in enumerate({x}.chunk(3))])"],
    ]
    return b.add("\n".join(b.rng.choice(bodies)), {name: x in b.exact})


@statement(0.7)
def while_there_is(b: Builder) -> bool:
    x, name, n = b.pick("float", rank=(1, 3)), b.fresh(), b.fresh("n")
    bodies = [
        [f"{n}, {name} = {b.size()}, {x}", f"while {n} > 1:", f"    {n}, {name} = {n} // 2, {name} + 1"],
        [f"{name} = {x}", f"while {name}.shape[0] > 2:", f"    {name} = {name}[: {name}.shape[0] // 2] * 2"],
        [f"{n}, {name} = 1, {x}", f"while {n} < {b.size()}:", f"    {n}, {name} = {n} * 2, {name} * -1"],
        [f"{name} = {x}", f"for _ in range({positive(b)} % 5):", f"    {name} = {name} + 1"],
        [f"{name} = {x}", f"for i in range({b.size()}):", "    if i > 2:", "        break", f"    {name} = {name} - i"],
    ]
    return b.add("\n".join(b.rng.choice(bodies)), {name: x in b.exact})


@statement(0.4)
def long_sums(b: Builder) -> bool:
    """Sizes that are added up in a loop."""
    x, n, name = b.pick("float int"), b.fresh("n"), b.fresh()
    step = b.rng.choice([b.size(), "i", "1", f"{b.size()} + i", f"{b.size()} // 2"])
    lines = [
        f"{n} = 0",
        f"for i in range({b.rng.choice([5, 40])}):",
        f"    {n} = {n} + {step}",
        f"{name} = {x} + {n} % 7",
    ]
    return b.add("\n".join(lines), {n: True, name: x in b.exact})
