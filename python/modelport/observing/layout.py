"""Which axes change between calls, which of them are one and the same, and what they are called."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence

from ..capturing.dynamic import Axes
from ..exporters.onnx_names import AXES
from .leaves import Choice, Fill, Leaf, Shape, alike
from .relations import Relation, difference, relations

Batch = bool | set[int | str] | None
Sizes = list[int | None]


@dataclasses.dataclass
class Symbol:
    """A size that axes share: in each call they are equally long."""

    name: str
    sizes: Sizes
    places: list[tuple[Leaf, int]]  # none where only a number tells it
    is_batch: bool = False

    @property
    def is_state(self) -> bool:
        """The length of something that is carried from call to call."""
        return not self.places or any(leaf.grows == axis for leaf, axis in self.places)

    @property
    def counts_items(self) -> bool:
        """A first axis that is no batch: images, patches, features of all rows together."""
        return not self.is_batch and not self.is_state and all(axis == 0 for _, axis in self.places)

    @property
    def varies(self) -> bool:
        return len(set(self.sizes) - {None}) > 1

    @property
    def is_axis(self) -> bool:
        return bool(self.places)

    @property
    def largest(self) -> int:
        return max(size for size in self.sizes if size is not None)

    def fits(self, sizes: Sizes) -> bool:
        known = [(a, b) for a, b in zip(self.sizes, sizes, strict=True) if a is not None and b is not None]
        return bool(known) and all(a == b for a, b in known)


class Layout:
    """The axes of all tensors under one choice of what stands in for missing ones."""

    def __init__(
        self,
        leaves: Sequence[Leaf],
        choices: Mapping[str, Choice],
        batch: Batch,
        positions: Sequence[str],
        counts: Iterable[Sizes] = (),
    ):
        """`positions` are the names of the arguments in the order of the signature, `counts` numbers in the arguments
        that are not the same in all calls."""
        self.choices = dict(choices)
        self.leaves = [leaf for leaf in leaves if not self._dropped(leaf)]
        self._symbols: list[Symbol] = []
        self._of: dict[tuple[str, int], Symbol] = {}
        self._forced = _batch_axes(self.leaves, batch, positions)
        self._rows = _rows([leaf for leaf in self.leaves if (leaf.name, 0) in self._forced] or self.leaves)
        self._find_symbols()
        self._find_counts(counts)
        self._name()
        self.relations = self._relations()

    def _dropped(self, leaf: Leaf) -> bool:
        choice = self.choices.get(leaf.name)
        return choice is not None and choice.fill is Fill.DROPPED

    @property
    def symbols(self) -> dict[str, Symbol]:
        return {symbol.name: symbol for symbol in self._symbols}

    def symbol(self, name: str, axis: int) -> Symbol | None:
        return self._of.get((name, axis))

    def shape(self, leaf: Leaf, call: int) -> Shape:
        """The shape in a call, of a stand-in too."""
        known = leaf.shapes[call]
        if known is not None:
            return known
        return tuple(self._stand_in_size(leaf, axis, call) for axis in range(leaf.rank))

    def _stand_in_size(self, leaf: Leaf, axis: int, call: int) -> int:
        choice = self.choices[leaf.name]
        if choice.fill is Fill.EMPTY and choice.axis == axis:
            return 0
        symbol = self.symbol(leaf.name, axis)
        size = None if symbol is None else symbol.sizes[call]
        return next(s for s in leaf.sizes(axis) if s is not None) if size is None else size

    def _sizes(self, leaf: Leaf, axis: int) -> Sizes:
        choice = self.choices.get(leaf.name)
        empty = choice is not None and choice.fill is Fill.EMPTY and choice.axis == axis
        return [0 if size is None and empty else size for size in leaf.sizes(axis)]

    def _find_symbols(self) -> None:
        axes = [(leaf, axis, self._sizes(leaf, axis)) for leaf in self.leaves for axis in range(leaf.rank)]
        wanted = [x for x in axes if (x[0].name, x[1]) in self._forced or len(set(x[2]) - {None}) > 1]
        # Axes that are known in every call first: the others are recognised as one of them.
        for leaf, axis, sizes in sorted(wanted, key=lambda x: None in x[2]):
            self._join(leaf, axis, sizes)
        for leaf in self.leaves:
            choice = self.choices.get(leaf.name)
            model = alike(leaf, self.leaves) if choice is not None and choice.fill is Fill.ZEROS else None
            if model is None:
                continue
            for axis in range(leaf.rank):
                symbol = self._of.get((model.name, axis))
                if symbol is not None and (leaf.name, axis) not in self._of:
                    self._place(symbol, leaf, axis)

    def _find_counts(self, counts: Iterable[Sizes]) -> None:
        """A cache with a window counts the tokens it has seen: a size that no tensor has, but the difference of two."""
        sizes = {str(i): symbol.sizes for i, symbol in enumerate(self._symbols)}
        for row in counts:
            follows = None if None in row else difference(row, sizes)
            if follows is not None and follows[1] and all(row != symbol.sizes for symbol in self._symbols):
                self._symbols.append(Symbol("", list(row), []))

    def _join(self, leaf: Leaf, axis: int, sizes: Sizes) -> None:
        rows = Symbol("", self._rows, []).fits(sizes) and None not in self._rows
        is_batch = rows and ((leaf.name, axis) in self._forced or axis == 0)
        for symbol in self._symbols:
            if symbol.sizes == sizes or (None in sizes and symbol.fits(sizes)):
                symbol.is_batch = symbol.is_batch or is_batch
                self._place(symbol, leaf, axis)
                return
        symbol = Symbol("", sizes, [], is_batch)
        self._symbols.append(symbol)
        self._place(symbol, leaf, axis)

    def _place(self, symbol: Symbol, leaf: Leaf, axis: int) -> None:
        symbol.places.append((leaf, axis))
        self._of[leaf.name, axis] = symbol

    def _name(self) -> None:
        taken: set[str] = set()
        for symbol in self._symbols:
            symbol.name = _free(_wanted_name(symbol), symbol, taken)
            taken.add(symbol.name)
        # The sum of what was and what is new has a name that people know.
        for found in self._relations():
            known, name = self.symbols, "total_sequence_length"
            if found.kind == "sum" and any(known[term].is_state for term in found.terms) and name not in taken:
                taken.add(name)
                known[found.name].name = name

    def _relations(self) -> list[Relation]:
        # What is carried over goes first in a sum.
        ordered = sorted((s for s in self._symbols if s.varies), key=lambda s: not s.is_state)
        return relations({symbol.name: symbol.sizes for symbol in ordered})


def _wanted_name(symbol: Symbol) -> str:
    if symbol.is_batch:
        return "batch_size"
    if symbol.is_state:
        return "past_sequence_length"
    names = [Axes().free_name(leaf.name, axis) for leaf, axis in symbol.places]
    known = next((AXES[name] for name in names if name in AXES), None)
    return known or names[0]


def _free(name: str, symbol: Symbol, taken: set[str]) -> str:
    if name in taken and symbol.places:
        leaf, axis = symbol.places[0]
        name = f"{re.sub(r'[^A-Za-z0-9_]', '_', leaf.name)}_{axis}"
    while name in taken:
        name += "_"
    return name


def _batch_axes(leaves: Sequence[Leaf], batch: Batch, positions: Sequence[str]) -> set[tuple[str, int]]:
    """The axes that are the batch: of the arguments asked for the first, with True those that look like it."""
    if not batch:
        return set()
    if batch is True:
        rows = _rows(leaves)
        return {(leaf.name, axis) for leaf in leaves for axis in _looks_like(leaf, rows)}
    asked = {positions[key] if isinstance(key, int) and key < len(positions) else key for key in batch}
    return {(leaf.name, 0) for leaf in leaves if leaf.rank and asked & {leaf.argument, leaf.name}}


def _rows(leaves: Iterable[Leaf]) -> Sizes:
    """The batch of each call: the first axis of the first tensor that it has."""
    ranked = [leaf for leaf in leaves if leaf.rank]
    always = [leaf for leaf in ranked if not leaf.missing]
    if always:
        return always[0].sizes(0)
    calls = range(len(ranked[0].tensors)) if ranked else range(0)
    return [next((leaf.sizes(0)[call] for leaf in ranked if leaf.sizes(0)[call] is not None), None) for call in calls]


def _looks_like(leaf: Leaf, rows: Sizes) -> list[int]:
    if leaf.rank == 0:
        return []
    known = [call for call, shape in enumerate(leaf.shapes) if shape is not None]

    def same(axis: int) -> bool:
        return all(leaf.sizes(axis)[call] == rows[call] for call in known)

    if same(0):
        return [0]
    if all(leaf.sizes(0)[call] == 1 for call in known):  # one for all rows
        return []
    # Positions with several components have these first: [3, batch, sequence].
    other = next((axis for axis in range(1, leaf.rank) if leaf.rank > 2 and same(axis)), None)
    return [] if leaf.varies(0) else [0 if other is None else other]
