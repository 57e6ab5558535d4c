"""A random program from a seed: the source of a model, its inputs, the axes that are dynamic."""

from __future__ import annotations

import dataclasses
import inspect
import random
from contextlib import suppress
from typing import Any

import torch

from . import ingredients  # noqa: F401  (registers them)
from .builder import Builder, NothingFits
from .ingredients.registry import STATEMENTS, choose
from .prelude import draw, settle
from .worlds import World

PLAIN = {"power": (2, 3), "flag": (True, False), "scale": (0.5, 0.25), "mode": ("sum", "max")}
OPTIONAL = "bias"


@dataclasses.dataclass(frozen=True)
class Input:
    """A tensor argument, or one of a tuple (`cache.0`); an axis is a name or a size."""

    name: str
    kind: str
    axes: tuple[int | str, ...]


@dataclasses.dataclass
class FuzzProgram:
    seed: int
    source: str
    inputs: list[Input]
    plain: dict[str, Any]
    sizes: dict[str, int]
    options: dict[str, Any]  # of modelport.capture
    stateful: bool

    def arguments(self, sizes: dict[str, int], seed: int, plain: dict[str, Any] | None = None) -> dict[str, Any]:
        """The call at these sizes: by axis, or by input and axis (`x.0`) where one input breaks ranks."""
        given: dict[str, Any] = {}
        for i, one in enumerate(self.inputs):
            shape = [sizes.get(f"{one.name}.{k}", sizes.get(str(a), a)) for k, a in enumerate(one.axes)]
            value = draw(one.kind, shape, seed * 31 + i)
            top = one.name.split(".")[0]
            given[top] = (*given.get(top, ()), value) if "." in one.name else value
        return given | (self.plain if plain is None else plain)


def make_program(seed: int) -> FuzzProgram:
    rng = random.Random(seed)
    inputs = _inputs(rng)
    axes = sorted({str(axis) for one in inputs for axis in one.axes if isinstance(axis, str)})
    plain = {name: rng.choice(values) for name, values in PLAIN.items() if rng.random() < 0.15}
    if rng.random() < 0.15:
        plain[OPTIONAL] = None if rng.random() < 0.5 else draw("float", [3], seed)
    sizes = {axis: rng.choice([1, 2, 3, 4, 5, 5, 6, 7, 8, 9, 12]) for axis in axes}
    others = [{axis: rng.randint(1, 11) for axis in axes} for _ in range(2)]
    program = FuzzProgram(seed, "", inputs, plain, sizes, _options(rng, inputs), False)
    worlds = [World(at, program.arguments(at, seed + i) | {"settle": settle}) for i, at in enumerate([sizes, *others])]
    names = list(dict.fromkeys(one.name.split(".")[0] for one in inputs)) + list(plain)
    builder = Builder(rng, worlds, [name for name in names if name != "cache"])
    if "cache" in names:
        builder.add("past0, past1 = cache", {"past0": True, "past1": True})
    _grow(builder)
    program.source = _source(builder, names, plain)
    program.stateful = any("register_buffer" in line for line in builder.init) or "self.seen" in program.source
    return program


def _grow(b: Builder) -> None:
    wanted = b.rng.randint(2, 9)
    made = 0
    for _ in range(12 * wanted):
        with suppress(NothingFits):
            made += bool(choose(b, STATEMENTS)(b))
        b.drop_pending()
        if made >= wanted:
            return


def _inputs(rng: random.Random) -> list[Input]:
    width = rng.randint(2, 4)
    main: list[Input] = [
        Input("x", "float", ("b", "s", width)),
        Input("x", "float", ("b", "s", width)),
        Input("x", "float", ("b", "s")),
        Input("x", "float", ("s", width)),
        Input("x", "float", ("s",)),
        Input("ids", "int", ("b", "s")),
        Input("ids", "int", ("s",)),
    ]
    rows = rng.choice([("b",), ()])
    further = [
        [Input("y", "float", ("b", "t", width))],
        [Input("y", "float", ("t", width))],
        [Input("y", "float", ("b", "s", width))],
        [Input("mask", "bool", ("b", "s"))],
        [Input("n", "int", ())],
        [Input("k", "int", (1,))],
        [Input("z", "int", (*rows, "s"))],
        [Input("past", "float", ("b", "p", width))],
        [Input("cache.0", "float", ("b", "p", width)), Input("cache.1", "float", ("b", "p", width))],
    ]
    chosen = [rng.choice(main)]
    for more in rng.sample(further, rng.choice([0, 0, 1, 1, 2])):
        chosen += more
    return chosen


def _options(rng: random.Random, inputs: list[Input]) -> dict[str, Any]:
    if rng.random() < 0.4:
        return {"dynamic": True}
    left_out = {axis for axis in ("b", "s", "t", "p") if rng.random() < 0.12}
    shapes: dict[str, Any] = {}
    for one in inputs:
        axes = {i: str(a) for i, a in enumerate(one.axes) if isinstance(a, str) and a not in left_out}
        top = one.name.split(".")[0]
        shapes[top] = (*shapes.get(top, ()), axes) if "." in one.name else axes
    return {"dynamic_shapes": shapes}


def _result(b: Builder) -> str:
    tensors = [name for name in b.names if isinstance(b.of(name), torch.Tensor)]
    last = tensors[-1]
    some = [last, *b.rng.sample(tensors, min(len(tensors), b.rng.randint(0, 3)))]
    numbers = [name for name in b.numbers() if name not in PLAIN]
    if numbers and b.chance(0.15):
        some.append(b.rng.choice(numbers))
    if b.chance(0.1):
        some.append(f"{last}.sum()")
    if len(some) == 1:
        return b.rng.choice([last, last, f"({last},)", f"{{'out': {last}}}"])
    pairs = ", ".join(f"'o{i}': {name}" for i, name in enumerate(some))
    return b.rng.choice(
        [f"({', '.join(some)})", f"{{{pairs}}}", f"{{'first': {some[0]}, 'rest': [{', '.join(some[1:])}]}}"]
    )


def _source(b: Builder, names: list[str], plain: dict[str, Any]) -> str:
    defaults = [f"{name}={None if isinstance(plain[name], torch.Tensor) else plain[name]!r}" for name in plain]
    signature = ", ".join(["self", *(n for n in names if n not in plain), *defaults])
    body = [*b.body, f"return {_result(b)}"]
    lines = [
        "import math",
        "",
        "import torch",
        "import torch.nn.functional as F",
        "from torch import nn",
        "",
        "",
        inspect.getsource(settle),
        "",
        inspect.getsource(draw),
        "",
        "class Model(nn.Module):",
        "    def __init__(self):",
        "        super().__init__()",
        *(f"        {line}" for line in b.init),
        "",
        f"    def forward({signature}):",
        *(f"        {line}" for line in body),
        "",
        "",
        "def make():",
        f"    torch.manual_seed({b.rng.randint(0, 999)})",
        "    model = Model().eval()",
        "    settle(model)",
        "    return model",
        "",
    ]
    return "\n".join(lines)
