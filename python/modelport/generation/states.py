"""States that are no cache of transformers: lists or objects of tensors that a model hands from call to call, and
tensors that it keeps in its modules. As inputs and outputs of a graph they have names: past_state.0,
present_state.0."""

from __future__ import annotations

import copy
import dataclasses
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from inspect import signature
from typing import Any

import torch
from transformers.cache_utils import Cache
from transformers.generation.utils import ALL_CACHE_NAMES

from ..base.structure import Flat, flatten, unflatten
from .continuing import STATE
from .watching import Call

Place = tuple[str, str]  # of a tensor in a module: the module's name and the attribute


@dataclasses.dataclass
class States:
    """Where a model keeps its states: `arguments` by name in the form of an example, `attributes` by the name of their
    input; `empty` are caches of transformers before the first token, for models that do not make them on their own."""

    arguments: dict[str, Flat]
    attributes: dict[str, Place]
    empty: dict[str, Cache]

    def flat(self, call: Call, kept: Mapping[Place, torch.Tensor]) -> Call:
        """A call with each tensor of its states as an argument of its own. The first has none."""
        plain = {n: v for n, v in call.items() if n not in self.arguments and not _is_empty(n, v)}
        for name in self.arguments:
            tensors = flatten({name: call.get(name)}).tensors()
            plain |= {past_name(name, leaf): tensor for leaf, tensor in tensors.items()}
        return plain | {name: kept[place] for name, place in self.attributes.items() if place in kept}


class Stateful(torch.nn.Module):
    """A model that takes and gives each tensor of its states by name."""

    def __init__(self, model: Any, states: States):
        super().__init__()
        self.model, self.config = model, model.config
        self.states = states
        self.flags = {"return_dict": True} | dict.fromkeys(
            {"use_cache"} & signature(model.forward).parameters.keys(), True
        )

    def forward(self, **given: Any) -> dict[str, Any]:
        past = {name: given.pop(name) for name in list(given) if name.startswith(STATE) and name not in ALL_CACHE_NAMES}
        call = {name: copy.deepcopy(cache) for name, cache in self.states.empty.items()} | given
        if past:
            call |= {name: _rebuilt(name, flat, past) for name, flat in self.states.arguments.items()}
        places = {place: past.get(name) for name, place in self.states.attributes.items()}
        with attributes_set(self.model, places) as kept:
            result = self.model(**call | self.flags)
            outputs = {"logits": result.logits} | {name: call[name] for name in self.states.empty}
            for name in self.states.arguments:
                state = flatten({name: getattr(result, name)}).tensors()
                outputs |= {present_name(past_name(name, leaf)): tensor for leaf, tensor in state.items()}
            now = kept()
            return outputs | {present_name(name): now[place] for name, place in self.states.attributes.items()}


def _rebuilt(name: str, flat: Flat, past: Mapping[str, Any]) -> Any:
    pairs = zip(flat.names, flat.leaves, strict=True)
    return unflatten([past.get(past_name(name, leaf), value) for leaf, value in pairs], flat.spec)[name]


def past_name(argument: str, leaf: str) -> str:
    """`state.0` is past_state.0. What lies in an object has names of its own: cache_params.rnn_state.0.1 is
    past_rnn_state.0.1."""
    inside = leaf.removeprefix(f"{argument}.")
    return STATE + (leaf if inside[0].isdigit() else inside)


def present_name(past: str) -> str:
    return past.replace("past", "present", 1)


def _is_empty(name: str, value: Any) -> bool:
    return isinstance(value, Cache) and not flatten({name: value}).tensors()


def find_states(model: Any, calls: list[Call], kept: list[Mapping[Place, torch.Tensor]]) -> States | None:
    """None where the model has only caches of transformers. `kept` is what its modules held before each call."""
    step = calls[1]
    arguments = {
        name: flatten({name: value})
        for name, value in step.items()
        if name in ALL_CACHE_NAMES and not isinstance(value, Cache) and flatten({name: value}).tensors()
    }
    places = _that_matter(model, calls, kept)
    for path, attribute in places:  # as if nothing had been generated
        setattr(model.get_submodule(path), attribute, kept[0].get((path, attribute)))
    attributes = {_named(place, kept[1]): place for place in places}
    if not arguments and not attributes:
        return None
    return States(arguments, attributes, {n: v for n, v in calls[0].items() if isinstance(v, Cache)})


def _named(place: Place, all_places: Mapping[Place, Any]) -> str:
    """By the attribute and the number of its layer; of two in one layer, the second by its whole path."""
    path, attribute = place
    number = re.search(r"\d+", path)
    name = f"{attribute}.{number[0] if number else 0}"
    same = [p for p in all_places if p[1] == attribute and re.search(r"\d+", p[0]) and _number(p[0]) == _number(path)]
    return STATE + (name if len(same) <= 1 or same[0] == place else f"{path.replace('.', '_')}_{name}")


def _number(path: str) -> str:
    found = re.search(r"\d+", path)
    return found[0] if found else ""


def _that_matter(model: Any, calls: list[Call], kept: list[Mapping[Place, torch.Tensor]]) -> list[Place]:
    """Attributes that change from call to call, and without whose value a step gives other logits."""
    changing = [place for place, value in kept[1].items() if place in kept[2] and _differ(value, kept[2][place])]
    if not changing:
        return []
    want = _logits(model, calls[1], kept[1])
    return [p for p in changing if _differ(want, _logits(model, calls[1], {**kept[1], p: kept[1][p] + 1}))]


def _differ(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.shape != b.shape or not torch.allclose(a, b, equal_nan=True)


@torch.no_grad()
def _logits(model: Any, call: Call, kept: Mapping[Place, torch.Tensor]) -> torch.Tensor:
    with attributes_set(model, kept):
        return model(**copy.deepcopy(call)).logits


@contextmanager
def attributes_watched(model: torch.nn.Module) -> Iterator[list[dict[Place, torch.Tensor]]]:
    """What the modules hold in plain attributes before each call of the model."""
    seen: list[dict[Place, torch.Tensor]] = []

    def look(*_args: Any) -> None:
        seen.append({place: value.clone() for place, value in _attributes(model)})

    handle = model.register_forward_pre_hook(look)
    try:
        yield seen
    finally:
        handle.remove()


def _attributes(model: torch.nn.Module) -> Iterator[tuple[Place, torch.Tensor]]:
    for path, module in model.named_modules():
        for name, value in vars(module).items():
            if isinstance(value, torch.Tensor) and value.is_floating_point():
                yield (path, name), value


@contextmanager
def attributes_set(model: torch.nn.Module, places: Mapping[Place, Any]) -> Iterator[Any]:
    """While it lasts, modules have these values; `kept()` gives those that they have then."""
    before = {place: getattr(model.get_submodule(place[0]), place[1]) for place in places}

    def put(values: Mapping[Place, Any]) -> None:
        for (path, attribute), value in values.items():
            setattr(model.get_submodule(path), attribute, value)

    def kept() -> dict[Place, Any]:
        return {place: getattr(model.get_submodule(place[0]), place[1]) for place in places}

    put(places)
    try:
        yield kept
    finally:
        put(before)
