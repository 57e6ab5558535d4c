"""An example that no call was: every axis that may change is at least 2 long, so that a capture keeps it open.

A size of 0 or 1 says nothing about other sizes, and in calls of a generation some axis always has one: no past in the
first call, one token in the others. The example is put together from the calls by the relations between their sizes."""

from __future__ import annotations

import torch

from .layout import Symbol
from .leaves import Leaf
from .plan import Plan
from .relations import Relation

_LARGEST = 64  # of the sizes that are tried where any will do


class Example:
    """`tensors` by name, `sizes` by the name of the axis, `base` the call that it starts from."""

    def __init__(self, plan: Plan):
        self.plan = plan
        self.symbols = plan.layout.symbols
        self.relations = {relation.name: relation for relation in plan.layout.relations}
        self.base = max(range(len(plan.calls.inputs)), key=self._wealth)
        self.sizes = self._sizes()
        self.tensors = {leaf.name: self._tensor(leaf) for leaf in plan.inputs}

    def _wealth(self, call: int) -> tuple[int, int, int]:
        """The call to start from has most of what is not carried over: the prompt, the images."""
        new = [leaf for leaf in self.plan.inputs if not leaf.carried]
        present = [tensor for tensor in (leaf.tensors[call] for leaf in new) if tensor is not None and tensor.numel()]
        return len(present), sum(tensor.numel() for tensor in present), -call

    def _sizes(self) -> dict[str, int]:
        free = [symbol for name, symbol in self.symbols.items() if name not in self.relations]
        # The batch and what is carried over take sizes that are left: they can be anything.
        free.sort(key=lambda symbol: (symbol.is_batch, symbol.is_state))
        sizes: dict[str, int] = {}
        for symbol in free:
            if not symbol.is_batch and not symbol.is_state:
                sizes[symbol.name] = self._observed(symbol)
        for symbol in free:
            if symbol.is_batch or symbol.is_state:
                sizes[symbol.name] = self._chosen(symbol, sizes)
        self._grow_items(free, sizes)
        return sizes | {name: relation.size(sizes) for name, relation in self.relations.items()}

    def _grow_items(self, free: list[Symbol], sizes: dict[str, int]) -> None:
        """Images and the like go with the rows that show them: twice the rows, twice the images. Where the rows cannot
        be more, each is twice as long."""
        items = [symbol for symbol in free if symbol.counts_items]
        rows = next((symbol for symbol in free if symbol.is_batch), None)
        growth = 1 if rows is None else -(-sizes[rows.name] // (rows.sizes[self.base] or 1))
        if growth == 1 and any(sizes[symbol.name] < 2 for symbol in items):
            growth, tokens = 2, self._tokens()
            if tokens is not None and tokens.name in sizes:
                sizes[tokens.name] *= growth
        for symbol in items:
            sizes[symbol.name] = max(2, growth * sizes[symbol.name])

    def _tokens(self) -> Symbol | None:
        """The axis along a row of the first tensor of integers."""
        whole = (leaf for leaf in self.plan.inputs if leaf.rank == 2 and not leaf.dtype.is_floating_point)
        return next((self.plan.layout.symbol(leaf.name, 1) for leaf in whole), None)

    def _observed(self, symbol: Symbol) -> int:
        here = symbol.sizes[self.base]
        return here if here is not None and here > 1 else max(symbol.largest, 1 if symbol.counts_items else 2)

    def _chosen(self, symbol: Symbol, sizes: dict[str, int]) -> int:
        """As observed where that will do, otherwise the smallest size that no other axis has."""
        here = symbol.sizes[self.base]
        if symbol.is_batch and here is not None and here > 1:
            return here
        apart = (size for size in range(2, _LARGEST) if self._stands_apart(symbol.name, size, sizes))
        return next(apart, 2)

    def _stands_apart(self, name: str, size: int, sizes: dict[str, int]) -> bool:
        """Axes of one size by accident look like one axis to whoever compares them."""
        known = {**sizes, name: size}
        following = [
            relation.size(known)
            for relation in self.relations.values()
            if name in relation.terms and all(term in known for term in relation.terms)
        ]
        values = [*known.values(), *following]
        return len(set(values)) == len(values)

    def _tensor(self, leaf: Leaf) -> torch.Tensor:
        tensor = self._source(leaf)
        for axis in range(leaf.rank):
            symbol = self.plan.layout.symbol(leaf.name, axis)
            if symbol is None:
                continue
            parts = self._parts(leaf, symbol)
            if parts is not None:
                tensor = self._joined(leaf, tensor, axis, parts)
            tensor = _resized(tensor, axis, self.sizes[symbol.name])
        return self._moved(leaf, tensor).clone(memory_format=torch.contiguous_format)

    def _source(self, leaf: Leaf) -> torch.Tensor:
        """Its values in the call that the example starts from; in the one with most of them where it has none."""
        here = leaf.tensors[self.base]
        if here is not None and here.numel():
            return here
        known = [tensor for tensor in leaf.tensors if tensor is not None]
        return max(known, key=lambda tensor: tensor.numel())

    def _parts(self, leaf: Leaf, symbol: Symbol) -> tuple[Symbol, Symbol] | None:
        """For an axis that is the sum of a past and something new: the two."""
        relation = self.relations.get(symbol.name)
        if relation is None or relation.kind != "sum" or leaf.tensors[self.base] is None:
            return None
        return _past_first(relation, self.symbols)

    def _joined(self, leaf: Leaf, tensor: torch.Tensor, axis: int, parts: tuple[Symbol, Symbol]) -> torch.Tensor:
        """The new part as in the call that the example starts from, before it the past of the call that has most."""
        past, new = parts
        calls = [call for call, other in enumerate(leaf.tensors) if other is not None]
        longest = max(calls, key=lambda call: past.sizes[call] or 0)
        donor = leaf.tensors[longest]
        length = past.sizes[longest] or 0
        fresh = new.sizes[self.base] or 0
        if donor is None or not length:
            return tensor
        before = donor.narrow(axis, 0, length)
        for other in range(tensor.dim()):
            if other != axis:
                before = _resized(before, other, tensor.shape[other])
        before = _resized(before, axis, self.sizes[past.name])
        after = _resized(tensor.narrow(axis, tensor.shape[axis] - fresh, fresh), axis, self.sizes[new.name])
        return torch.cat([before, after], dim=axis)

    def _moved(self, leaf: Leaf, tensor: torch.Tensor) -> torch.Tensor:
        """Positions count from the start of the past: they move by as much as it is longer."""
        if tensor.dtype not in (torch.int64, torch.int32) or leaf.missing:
            return tensor
        states = [s for s in self.symbols.values() if s.is_state and s.name not in self.relations]
        for past in states:
            ends = {
                int(t.max()) - (past.sizes[call] or 0) - self._new_tokens(leaf, call)
                for call, t in enumerate(leaf.tensors)
                if t is not None and t.numel()
            }
            if len(ends) == 1 and max(ends) < 0 and past.varies:
                return tensor + (self.sizes[past.name] - (past.sizes[self.base] or 0))
        return tensor

    def _new_tokens(self, leaf: Leaf, call: int) -> int:
        tensor = leaf.tensors[call]
        return 0 if tensor is None or not tensor.dim() else tensor.shape[-1]


def _past_first(relation: Relation, symbols: dict[str, Symbol]) -> tuple[Symbol, Symbol] | None:
    one, other = (symbols[term] for term in relation.terms)
    if one.is_state == other.is_state:
        return None
    return (one, other) if one.is_state else (other, one)


def _resized(tensor: torch.Tensor, axis: int, size: int) -> torch.Tensor:
    """Rows repeat or are cut off, so that the values stay such as the model takes."""
    have = tensor.shape[axis]
    if have == size or not have:
        return tensor
    return tensor.index_select(axis, torch.arange(size, device=tensor.device) % have)
