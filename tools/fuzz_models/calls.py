"""The calls a program is tried with: sizes inside the limits and just outside, other data, other plain arguments."""

from __future__ import annotations

import dataclasses
import random
from typing import Any

import torch

from .limits import inside, numbers_in
from .prelude import draw
from .program import OPTIONAL, PLAIN, FuzzProgram


@dataclasses.dataclass
class Trial:
    """`sizes` by axis, or by input and axis; `seed` of the data."""

    sizes: dict[str, int]
    seed: int
    plain: dict[str, Any]
    inside: bool

    def text(self, program: FuzzProgram) -> str:
        """The arguments, as a program writes them."""
        parts: dict[str, list[str]] = {}
        for i, one in enumerate(program.inputs):
            shape = [self.sizes.get(f"{one.name}.{k}", self.sizes.get(str(a), a)) for k, a in enumerate(one.axes)]
            parts.setdefault(one.name.split(".")[0], []).append(f"draw({one.kind!r}, {shape}, {self.seed * 31 + i})")
        nested = {one.name.split(".")[0] for one in program.inputs if "." in one.name}
        given = [f"{n!r}: ({', '.join(p)},)" if n in nested else f"{n!r}: {p[0]}" for n, p in parts.items()]
        return f"{{{', '.join([*given, *(f'{n!r}: {_literal(v)}' for n, v in self.plain.items())])}}}"


def _literal(value: Any) -> str:
    return f"torch.tensor({value.tolist()})" if isinstance(value, torch.Tensor) else repr(value)


def calls(program: FuzzProgram, captured: Any, many: int = 5) -> list[Trial]:
    """First those inside the limits, in a row; then those outside, and with other plain arguments."""
    rng = random.Random(program.seed + 1)
    known = numbers_in(captured)
    near = sorted({max(n + d, 0) for n in known for d in (-1, 0, 1)})
    seen = []
    for i in range(12 * many):
        sizes = {axis: _size(rng, hint, near) for axis, hint in program.sizes.items()}
        if i == 0:
            sizes = dict(program.sizes)
        elif i % 3 == 0 and program.inputs:
            one = rng.choice(program.inputs)
            named = [k for k, axis in enumerate(one.axes) if isinstance(axis, str)]
            if named:  # one input alone has another size, which may be 1 and broadcast
                sizes |= program.sizes | {f"{one.name}.{rng.choice(named)}": rng.choice([0, 1, 1, 2, 3, 7])}
        seen.append(_trial(program, captured, sizes, rng.randint(1, 99), program.plain))
    seen = list({str(sorted(trial.sizes.items())): trial for trial in seen}.values())
    inner, outer = [t for t in seen if t.inside][:many], [t for t in seen if not t.inside][:many]
    data = [dataclasses.replace(t, seed=t.seed + 100 + i) for i, t in enumerate(inner[:2])]
    changed = [_trial(program, captured, program.sizes, 7, plain) for plain in _other_plain(program)]
    return [*inner, *data, *outer, *changed]


def _trial(program: FuzzProgram, captured: Any, sizes: dict[str, int], seed: int, plain: dict[str, Any]) -> Trial:
    return Trial(sizes, seed, plain, inside(program, captured, program.arguments(sizes, seed, plain)))


def _size(rng: random.Random, hint: int, near: list[int]) -> int:
    return rng.choice([hint, hint + 1, max(hint - 1, 0), 2 * hint, rng.randint(1, 13), rng.choice(near), 1])


def _other_plain(program: FuzzProgram) -> list[dict[str, Any]]:
    changed = []
    for name, value in program.plain.items():
        if name == OPTIONAL:
            other = draw("float", [3], 5) if value is None else None
        else:
            other = next(v for v in PLAIN[name] if v != value)
        changed.append(program.plain | {name: other})
    return changed
