"""Each tensor of the arguments over all calls: its shapes, where it is missing, and what can stand in for it there."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from ..base.errors import problem
from ..base.structure import flatten
from .calls import InputCandidate, Path

Shape = tuple[int, ...]


class Fill(enum.Enum):
    """What a call that lacks a tensor gets in its place."""

    EMPTY = "empty"  # no elements: the size of one axis is 0
    ZEROS = "zeros"  # of the sizes that the call has
    DROPPED = "dropped"  # nothing, and the calls that have it lose it too


@dataclasses.dataclass(frozen=True)
class Choice:
    fill: Fill
    axis: int = 0


@dataclasses.dataclass
class Leaf:
    """One tensor by its dotted name, over the calls."""

    name: str
    argument: str
    path: Path
    dtype: torch.dtype
    device: torch.device
    tensors: list[torch.Tensor | None]  # a call that lacks it has None
    grows: int | None = None  # the axis along which the output of the same name is longer
    carried: bool = False  # it is an output too: a state that goes from call to call

    @property
    def shapes(self) -> list[Shape | None]:
        return [None if t is None else tuple(t.shape) for t in self.tensors]

    @property
    def rank(self) -> int:
        return next(t.dim() for t in self.tensors if t is not None)

    @property
    def missing(self) -> tuple[int, ...]:
        return tuple(i for i, t in enumerate(self.tensors) if t is None)

    @property
    def nested(self) -> bool:
        return self.name != self.argument

    def sizes(self, axis: int) -> list[int | None]:
        return [None if shape is None else shape[axis] for shape in self.shapes]

    def varies(self, axis: int) -> bool:
        return len({size for size in self.sizes(axis) if size is not None}) > 1

    @property
    def is_setting(self) -> bool:
        """A number that an object keeps as a tensor, the same in all calls: part of the model rather than an input."""
        known = [t for t in self.tensors if t is not None]
        return self.nested and self.rank == 0 and all(torch.equal(t, known[0]) for t in known)


def leaves_of(
    calls: Sequence[InputCandidate],
    outputs: Sequence[Mapping[str, torch.Tensor]],
    order: Sequence[str],
    if_missing: Mapping[str, Any],
) -> list[Leaf]:
    """The tensors of all calls in the order of the arguments, those inside an argument as in the fullest call."""
    leaves: dict[str, Leaf] = {}
    found = [call.tensors for call in calls]
    stand_ins = _stand_ins(if_missing)
    for argument in order:
        fullest = max(range(len(calls)), key=lambda i: (sum(map(_of(argument), found[i])), -i))
        for name in filter(_of(argument), found[fullest]):
            tensor = found[fullest][name]
            place = calls[fullest].paths[name]
            tensors = [_usable(tensors.get(name), tensor.dim()) for tensors in found]
            tensors = [stand_ins.get(name) if t is None else t for t in tensors]
            leaves[name] = Leaf(name, argument, place, tensor.dtype, tensor.device, tensors)
        _check_structure(argument, found, leaves, fullest)
    for leaf in leaves.values():
        _check_ranks(leaf)
        _watch_outputs(leaf, outputs)
    _as_siblings(list(leaves.values()))
    return list(leaves.values())


def _of(argument: str) -> Any:
    return lambda name: name == argument or name.startswith(f"{argument}.")


def _stand_ins(if_missing: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    return flatten(dict(if_missing)).tensors() if if_missing else {}


def _usable(tensor: torch.Tensor | None, rank: int) -> torch.Tensor | None:
    """A layer of a cache that was prepared and not filled holds tensors without a shape of their own."""
    if tensor is not None and tensor.numel() == 0 and tensor.dim() < rank:
        return None
    return tensor


def _check_structure(argument: str, found: list[dict[str, torch.Tensor]], leaves: dict[str, Leaf], at: int) -> None:
    for call, tensors in enumerate(found):
        other = [name for name in tensors if _of(argument)(name) and name not in leaves]
        if other:
            raise problem(
                "E0313",
                f"the argument {argument!r} holds {', '.join(other[:3])} in call {call} and not in call {at}: "
                "no single example has both",
                f"observer.export(path, calls=[{call}])",
                f"observer.remove_inputs([{argument!r}])",
            )


def _check_ranks(leaf: Leaf) -> None:
    ranks = {len(shape): call for call, shape in enumerate(leaf.shapes) if shape is not None}
    if len(ranks) > 1:
        told = " and ".join(f"{rank} axes in call {call}" for rank, call in ranks.items())
        raise problem(
            "E0313",
            f"{leaf.name} has {told}: one graph takes it with one number of axes",
            *(f"observer.export(path, calls=[{call}])" for call in ranks.values()),
        )


def _watch_outputs(leaf: Leaf, outputs: Sequence[Mapping[str, torch.Tensor]]) -> None:
    """A cache that comes out longer than it went in grows along that axis."""
    leaf.carried = any(leaf.name in results for results in outputs)
    for shape, results in zip(leaf.shapes, outputs, strict=True):
        result = results.get(leaf.name)
        if shape is None or result is None or result.dim() != len(shape):
            continue
        longer = [axis for axis, (a, b) in enumerate(zip(shape, result.shape, strict=True)) if b > a]
        if len(longer) == 1:
            leaf.grows = longer[0]
            return


def _as_siblings(leaves: list[Leaf]) -> None:
    """Of a state whose tensors grow in one layer, those that have reached their length grew along the same axis."""
    for leaf in leaves:
        if leaf.carried and leaf.grows is None:
            like = (x.grows for x in leaves if x.argument == leaf.argument and x.rank == leaf.rank and x is not leaf)
            moved = next((axis for axis in like if axis is not None), None)
            if moved is not None and leaf.varies(moved):
                leaf.grows = moved


def options(leaf: Leaf, leaves: Sequence[Leaf]) -> list[Choice]:
    """What may stand in for a missing tensor, the likeliest first."""
    empty = [Choice(Fill.EMPTY, axis) for axis in _empty_axes(leaf, leaves)]
    if leaf.grows is not None:
        return empty
    if not leaf.nested and not leaf.dtype.is_floating_point and alike(leaf, leaves) is not None:
        return [Choice(Fill.ZEROS), *empty, Choice(Fill.DROPPED)]
    return [*empty, Choice(Fill.ZEROS), Choice(Fill.DROPPED)]


def _empty_axes(leaf: Leaf, leaves: Sequence[Leaf]) -> list[int]:
    """The axes that may have nothing on them."""
    if leaf.grows is not None:
        return [leaf.grows]
    if leaf.carried and leaf.rank > 1:
        # A state that did not grow in any call may be full: as in its siblings, or where caches have their tokens.
        like = [x.grows for x in leaves if x.argument == leaf.argument and x.rank == leaf.rank and x.grows is not None]
        return like[:1] or [leaf.rank - 2]
    varying = [axis for axis in range(leaf.rank) if leaf.varies(axis)]
    return list(dict.fromkeys([*varying[-1:], *range(min(leaf.rank, 1))]))


def alike(leaf: Leaf, leaves: Sequence[Leaf]) -> Leaf | None:
    """Another tensor that all calls have, and of the same shape where they have this one: one number a token, say."""
    return next(
        (
            other
            for other in leaves
            if other is not leaf
            and not other.missing
            and other.rank == leaf.rank
            and all(shape is None or shape == whole for shape, whole in zip(leaf.shapes, other.shapes, strict=True))
        ),
        None,
    )
