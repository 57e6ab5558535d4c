"""What ingredients are made with: names that fit, sizes as text, modules and buffers."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable
from typing import Any

import torch

from .worlds import World, is_exact


class NothingFits(Exception):
    """The program has no variable that this ingredient could use."""


@dataclasses.dataclass
class Expression:
    """`exact`: every runtime gives the same bits, so that a branch or a cast may depend on it."""

    text: str
    exact: bool = True


Ingredient = Callable[["Builder"], Any]
FLOATS = (torch.float32, torch.float64, torch.float16)


class Builder:
    def __init__(self, rng: random.Random, worlds: list[World], names: list[str]):
        self.rng = rng
        self.worlds = worlds
        self.names = names  # variables that a statement may use
        self.exact = set(names)
        self.init: list[str] = []
        self.body: list[str] = []
        self.from_data: set[str] = set()  # Python numbers that came from tensors
        self._pending: list[str] = []
        self._count = 0

    # --- what there is ----------------------------------------------------------------------------------------------

    @property
    def first(self) -> World:
        return self.worlds[0]

    def living(self) -> list[World]:
        return [world for world in self.worlds if world.alive]

    def of(self, name: str) -> Any:
        return self.first.names[name]

    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(self.of(name).shape)

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def tensors(self, kind: str = "any", rank: tuple[int, int] = (0, 9), exact: bool = False) -> list[str]:
        found = []
        for name in self.names:
            x = self.of(name)
            if not isinstance(x, torch.Tensor) or not rank[0] <= x.dim() <= rank[1]:
                continue
            if (kind == "any" or kind_of(x) in kind) and (not exact or name in self.exact):
                found.append(name)
        return found

    def pick(self, kind: str = "any", rank: tuple[int, int] = (0, 9), exact: bool = False) -> str:
        """A tensor variable; the later ones more often, so that programs are deep rather than wide."""
        found = self.tensors(kind, rank, exact)
        if not found:
            raise NothingFits
        return self.rng.choice(found[-4:] if self.chance(0.6) else found)

    def alike(self, name: str) -> str:
        """Another tensor that broadcasts with this one in every world."""
        found = [other for other in self.tensors() if other != name and self.agree(f"{name} * {other}")]
        if not found:
            raise NothingFits
        return self.rng.choice(found)

    def agree(self, text: str) -> bool:
        """Whether the expression has a value in all worlds."""
        try:
            for world in self.living():
                world.value(text)
        except Exception:
            return False
        return True

    def is_fixed(self, name: str, axis: int) -> bool:
        shapes = [getattr(world.names[name], "shape", ()) for world in self.living()]
        same_rank = len({len(shape) for shape in shapes}) == 1
        return same_rank and len({shape[axis] for shape in shapes}) == 1

    def axis(self, name: str, fixed: bool | None = None) -> int:
        axes = [i for i in range(len(self.shape(name))) if fixed is None or self.is_fixed(name, i) == fixed]
        if not axes:
            raise NothingFits
        return self.rng.choice(axes)

    def numbers(self) -> list[str]:
        return [name for name in self.names if type(self.of(name)) is int]

    # --- text -------------------------------------------------------------------------------------------------------

    def size_of(self, name: str, axis: int) -> str:
        """One size of a tensor, as models write it."""
        forms = [f"{name}.shape[{axis}]", f"{name}.size({axis})", f"{name}.shape[{axis - len(self.shape(name))}]"]
        if axis == 0:
            forms.append(f"len({name})")
        if self.chance(0.15):
            return f"int({forms[0]})"
        return self.rng.choice(forms)

    def size(self) -> str:
        """A size that changes from world to world where there is one."""
        numbers = self.numbers()
        if numbers and self.chance(0.4):
            return self.rng.choice(numbers)
        name = self.pick(rank=(1, 5))
        try:
            return self.size_of(name, self.axis(name, fixed=False))
        except NothingFits:
            return self.size_of(name, self.axis(name))

    def fresh(self, prefix: str = "v") -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    def module(self, made: str) -> str:
        name = self.fresh("m")
        self._pending.append(f"self.{name} = {made}")
        return f"self.{name}"

    def buffer(self, made: str) -> str:
        name = self.fresh("b")
        kept = "" if self.chance(0.5) else ", persistent=False"
        self._pending.append(f'self.register_buffer("{name}", {made}{kept})')
        return f"self.{name}"

    # --- growing ----------------------------------------------------------------------------------------------------

    def add(self, text: str, names: dict[str, bool], trial: str | None = None) -> bool:
        """Keeps a statement if it works. `names` are the variables it makes and whether they are exact; `trial` is what
        runs in the worlds if the statement itself cannot (it returns)."""
        pending, self._pending = self._pending, []
        tried = "\n".join([*pending, *map(settled, pending), text if trial is None else trial])
        if not self.first.works(tried):
            return False
        others = [world for world in self.worlds[1:] if world.alive]
        works = [world.works(tried) for world in others]
        if not all(works) and self.chance(0.9):
            self._forget([self.first, *(w for w, good in zip(others, works, strict=True) if good)])
            return False
        self.first.keep(tried)
        for world, good in zip(others, works, strict=True):
            world.keep(tried) if good else setattr(world, "alive", False)
        self.init += pending
        self.body += text.split("\n")
        for name, exact in names.items():
            if name not in self.names:
                self.names.append(name)
            self.exact.discard(name)
            if exact and all(is_exact(world.names.get(name)) for world in self.living()):
                self.exact.add(name)
        return True

    def drop_pending(self) -> None:
        self._pending = []

    def _forget(self, worlds: list[World]) -> None:
        for world in worlds:
            world.works("raise ValueError")


def kind_of(x: torch.Tensor) -> str:
    return "float" if x.is_floating_point() else "bool" if x.dtype == torch.bool else "int"


def settled(line: str) -> str:
    """Parameters that are small multiples of a quarter: sums and products of them have no rounding."""
    name = line.split(" = ")[0]
    return f"settle({name})" if name.startswith("self.m") else ""
