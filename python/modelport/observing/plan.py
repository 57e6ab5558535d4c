"""One way of calling for all observed calls: the same arguments in each, with stand-ins for what a call lacks."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch

from ..base.errors import problem
from .calls import InputCandidate, InputObserverInfo, Path, Scalar, leaves_in
from .layout import Batch, Layout
from .leaves import Choice, Leaf, leaves_of, options
from .relations import difference

_MOST_PLANS = 32


class Calls:
    """The calls that are to be served, with their outputs."""

    def __init__(self, info: InputObserverInfo, which: Sequence[int], if_missing: Mapping[str, Any]):
        self.info = info
        self.signature = info.signature
        self.which = list(which)
        self.inputs: list[InputCandidate] = [info.inputs[i] for i in which]
        self.outputs = [info.results(i) for i in which]
        self.positional = all(call.positional for call in self.inputs)
        self.order = self._order()
        self.leaves = leaves_of(self.inputs, self.outputs, self.order, if_missing)

    def _order(self) -> list[str]:
        """The arguments in the order of the signature, then those of `**kwargs`."""
        nested = [list(call.built({})) for call in self.inputs]
        given = dict.fromkeys(itertools.chain.from_iterable(nested))
        first = [name for name in self.signature.names[: self.signature.rest_at] if name in given]
        rest = [self.signature.rest] if self.signature.rest in given else []
        named = [name for name in self.signature.names[self.signature.rest_at :] if name in given]
        ordered = [*first, *rest, *named]
        return [*ordered, *(name for name in given if name not in ordered)]

    def groups(self) -> list[list[Leaf]]:
        """Tensors that calls lack, those together that stand or fall together."""
        found: dict[Any, list[Leaf]] = {}
        for leaf in self.leaves:
            if leaf.missing:
                likely = tuple(options(leaf, self.leaves))
                found.setdefault((leaf.argument, leaf.missing, leaf.grows is None, likely), []).append(leaf)
        return list(found.values())

    def choices(self) -> Iterator[dict[str, Choice]]:
        """What may stand in for the missing tensors, the likeliest first."""
        groups = self.groups()
        ranked = [list(enumerate(options(group[0], self.leaves))) for group in groups]
        every = sorted(itertools.product(*ranked), key=lambda picks: sum(rank for rank, _ in picks))
        for picks in every[:_MOST_PLANS]:
            yield {leaf.name: pick for group, (_, pick) in zip(groups, picks, strict=True) for leaf in group}


class Plan:
    """The calls with one choice of stand-ins: tensors by name for each call, and how to call the method with them."""

    def __init__(self, calls: Calls, choices: Mapping[str, Choice], batch: Batch = None):
        self.calls = calls
        counts = [row for _, row in self._differing() if _are_counts(row)]
        self.layout = Layout(calls.leaves, choices, batch, calls.signature.names, counts)
        self.dropped = [leaf for leaf in calls.leaves if leaf not in self.layout.leaves]
        self._templates = {a: self._fullest(a) for a in calls.order}
        self.settings = {x.name: _first(x.tensors) for x in self.layout.leaves if x.is_setting}
        self.hidden: dict[str, torch.Tensor] = {}  # tensors that no graph needs
        self._bound = self._follow_sizes()
        self.constants = self._constants()

    @property
    def inputs(self) -> list[Leaf]:
        """The tensors that a graph takes."""
        return [leaf for leaf in self.layout.leaves if leaf.name not in self.settings | self.hidden]

    def tensors(self, call: int) -> dict[str, torch.Tensor]:
        """The inputs of one call, stand-ins where it lacks them."""
        found = {}
        for leaf in self.inputs:
            tensor = leaf.tensors[call]
            if tensor is None:
                tensor = torch.zeros(self.layout.shape(leaf, call), dtype=leaf.dtype, device=leaf.device)
            found[leaf.name] = tensor
        return found

    def changes(self, call: int) -> bool:
        """Whether the call differs from the observed one: stand-ins, or arguments that are left out."""
        candidate = self.calls.inputs[call]
        lacks = any(leaf.tensors[call] is None for leaf in self.inputs)
        loses = any(leaf.name in candidate.tensors for leaf in self.dropped)
        return lacks or loses or bool(self.left_out & set(candidate.cst_kwargs))

    def arguments(self, tensors: Mapping[str, torch.Tensor]) -> dict[str, Any]:
        """What the method takes, made of tensors by name. Sizes may be symbols."""
        built: dict[str, Any] = {}
        every = {**self.settings, **self.hidden, **tensors}
        for argument in self.calls.order:
            if any(leaf.argument == argument for leaf in self.layout.leaves):
                template = self.calls.inputs[self._templates[argument]]
                built[argument] = template.built(every)[argument]
        self._take_out_dropped(built)
        sizes = {}
        for path, (name, less) in self._bound.items():
            for symbol in filter(None, (name, less)):
                sizes[symbol] = self._size_of(symbol, tensors)
            value = sizes[name] - sizes[less] if less else sizes[name]
            _set_at(built, path, value)
        return built | self.constants

    def named(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Without settings that only `**kwargs` takes: torch.export cannot be told of them."""
        known = {*self.calls.signature.names, *self.calls.order}
        return {name: value for name, value in arguments.items() if name in known}

    def as_call(self, arguments: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return self.calls.signature.as_call(arguments, positional=self.calls.positional)

    def without_settings(self, result: Any) -> Any:
        """What an object keeps for itself is no output either."""
        own = {id(tensor) for tensor in self.settings.values()}
        for path, leaf in list(leaves_in(result)):
            if isinstance(leaf, torch.Tensor) and id(leaf) in own:
                _set_at(result, path, None)
        return result

    def _size_of(self, symbol: str, tensors: Mapping[str, torch.Tensor]) -> int:
        leaf, axis = next(p for p in self.layout.symbols[symbol].places if p[0].name in tensors)
        return tensors[leaf.name].shape[axis]

    def _fullest(self, argument: str) -> int:
        counts = [sum(n.split(".")[0] == argument for n in call.tensors) for call in self.calls.inputs]
        return max(range(len(counts)), key=lambda i: (counts[i], -i))

    def hide(self, names: Iterable[str]) -> None:
        """Makes these tensors part of the call; all others are inputs again."""
        self.hidden = {leaf.name: _first(leaf.tensors) for leaf in self.layout.leaves if leaf.name in names}

    def _follow_sizes(self) -> dict[Path, tuple[str, str]]:
        """Numbers in the arguments that go with a size, as the count of tokens that a cache keeps."""
        sizes = {name: symbol.sizes for name, symbol in self.layout.symbols.items() if symbol.is_axis}
        found = {path: difference(row, sizes) for path, row in self._differing() if _are_counts(row)}
        return {path: follows for path, follows in found.items() if follows is not None}

    def _differing(self) -> Iterator[tuple[Path, list[Any]]]:
        """Numbers inside arguments, and arguments that are numbers, which are not the same in all calls."""
        inner = [call.numbers for call in self.calls.inputs]
        for path in dict.fromkeys(itertools.chain.from_iterable(inner)):
            row = [numbers.get(path) for numbers in inner]
            if len({(type(n), n) for n in row if n is not None}) > 1:
                yield path, row
        for name in dict.fromkeys(itertools.chain.from_iterable(c.cst_kwargs for c in self.calls.inputs)):
            default = self.calls.signature.defaults.get(name)
            row = [call.cst_kwargs.get(name, default) for call in self.calls.inputs]
            if name not in self.calls.order and any(n is not row[0] and n != row[0] for n in row):
                yield (name,), row

    def _constants(self) -> dict[str, Scalar]:
        """Arguments that are no tensors. One graph has one value of each, unless the value goes with a size. One that
        only `**kwargs` takes may be there for somebody else: it is left out."""
        constants: dict[str, Any] = {}
        for call in self.calls.inputs:
            constants |= dict(call.cst_kwargs)
        differing = {path[0]: row for path, row in self._differing() if len(path) == 1 and path not in self._bound}
        named = {name: row for name, row in differing.items() if name in self.calls.signature.names}
        if named:
            raise _differ(named, self.calls.which)
        self.left_out = set(differing)
        return {n: value for n, value in constants.items() if (n,) not in self._bound and n not in differing}

    def _take_out_dropped(self, built: dict[str, Any]) -> None:
        """What is dropped from inside an argument leaves the state of a call that never had it."""
        partly = {leaf.argument for leaf in self.dropped} & set(built)
        for argument in partly:
            gone = [leaf for leaf in self.dropped if leaf.argument == argument]
            without = self._without(argument, gone)
            kept = {leaf.path[:-1] for leaf in self.layout.leaves if leaf.argument == argument}
            for owner in {leaf.path[:-1] for leaf in gone}:
                _transplant(without, built, owner)
            candidate = next(c for c in self.calls.inputs if not any(leaf.name in c.tensors for leaf in gone))
            for path, value in candidate.numbers.items():
                if path[0] == argument and path[:-1] not in kept:
                    _set_at(built, path, value)

    def _without(self, argument: str, gone: Sequence[Leaf]) -> dict[str, Any]:
        for candidate in self.calls.inputs:
            if not any(leaf.name in candidate.tensors for leaf in gone):
                nested = candidate.built({})
                if argument in nested:
                    return nested
        raise problem("E0313", f"no call shows {argument!r} without {gone[0].name}", "observe more calls")


def _are_counts(row: Sequence[Any]) -> bool:
    return all(isinstance(number, int) and not isinstance(number, bool) for number in row if number is not None)


def _first(tensors: Sequence[torch.Tensor | None]) -> torch.Tensor:
    return next(t for t in tensors if t is not None)


def _differ(differing: Mapping[str, Sequence[Any]], which: Sequence[int]) -> Exception:
    told = "; ".join(
        f"{name} was {', '.join(f'{value!r} in call {call}' for call, value in zip(which, row, strict=True))}"
        for name, row in differing.items()
    )
    name, row = next(iter(differing.items()))
    alike = [call for call, value in zip(which, row, strict=True) if value == row[0]]
    return problem(
        "E0313",
        f"arguments that are no tensors differ between the calls, and one graph has one value of each: {told}",
        f"observer.export(path, calls={alike})",
        f"observer.remove_inputs([{name!r}])",
    )


def _at(root: Any, path: Path) -> Any:
    for key in path:
        item: Any = key
        root = root[item] if isinstance(root, Mapping | list | tuple) else getattr(root, str(key))
    return root


def _set_at(root: Any, path: Path, value: Any) -> None:
    if len(path) == 1 and path[0] not in root:
        root[path[0]] = value
        return
    try:
        owner = _at(root, path[:-1])
    except (KeyError, IndexError, AttributeError):  # the object of this call has no such part
        return
    if isinstance(owner, dict | list):
        owner[path[-1]] = value  # type: ignore[index]
    elif not isinstance(owner, tuple):
        setattr(owner, str(path[-1]), value)


def _transplant(source: Any, target: Any, path: Path) -> None:
    donor, owner = _at(source, path), _at(target, path)
    if hasattr(owner, "__dict__"):
        owner.__dict__.clear()
        owner.__dict__.update(donor.__dict__)
    elif isinstance(owner, dict):
        owner.clear()
        owner.update(donor)
    elif isinstance(owner, list):
        owner[:] = donor
