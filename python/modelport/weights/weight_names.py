"""Which stored tensors make which weights of a model: renamings and conversions that transformers applies on load."""

from __future__ import annotations

import copy
import dataclasses
import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

import torch
from transformers.conversion_mapping import get_model_conversion_mapping
from transformers.core_model_loading import (
    WeightConverter,
    WeightRenaming,
    build_glob_alternation,
    dot_natural_key,
    rename_source_key,
)

from ..base.errors import ExportError, problem
from ..base.printable import listed
from ..models.transformers_private import dtype_plan, optional_weights
from .adapter import Adapter, Change
from .checkpoint import Checkpoint, StoredTensor
from .packed import PackedWeight

Read = Callable[[StoredTensor], torch.Tensor]


@dataclasses.dataclass(frozen=True)
class Source:
    """Where a weight comes from: stored tensors, and what is done to them (nothing, if `steps` is empty)."""

    pieces: tuple[StoredTensor, ...]
    steps: tuple[str, ...]
    made: torch.Tensor  # on meta: shape and dtype of what the steps give
    make: Callable[[Read], torch.Tensor]
    uncast: Source | None = None  # the same in the type that it is stored in, if the last step changes it
    packed: PackedWeight | None = None  # where the checkpoint has codes, of which the numbers are made

    @property
    def as_stored(self) -> StoredTensor | None:
        return None if self.steps else self.pieces[0]


@dataclasses.dataclass
class _Conversion:
    """One use of a converter of transformers: stored tensors that become one or more weights."""

    first: str
    converter: WeightConverter
    pieces: list[tuple[str, StoredTensor]] = dataclasses.field(default_factory=list)  # with the pattern that matched

    def run(self, model: Any, read: Read) -> dict[str, torch.Tensor]:
        converter = copy.deepcopy(self.converter)
        for pattern, stored in self.pieces:
            converter.add_tensor(self.first, stored.name, pattern, read(stored))
        made = converter.convert(self.first, model=model, config=model.config)
        return {name: value[0] if isinstance(value, list) else value for name, value in made.items()}


@dataclasses.dataclass
class Misfits:
    """What keeps a checkpoint from being the weights of a model; reported together."""

    missing: list[str] = dataclasses.field(default_factory=list)
    wrong: list[str] = dataclasses.field(default_factory=list)
    unused: list[str] = dataclasses.field(default_factory=list)

    def error(self, model: Any, checkpoint: Checkpoint) -> ExportError:
        name = type(model).__name__
        counted = []
        if self.missing:
            counted.append(f"lacks {len(self.missing)} weights of {name}")
        if self.wrong:
            counted.append(f"has {len(self.wrong)} tensors that do not fit {name}")
        notes = [f"missing {n}" for n in self.missing] + [f"wrong   {text}" for text in self.wrong]
        if self.unused:
            notes.append(f"unused  {listed(self.unused)}")
        error = problem(
            "E0104",
            f"{checkpoint.path} {' and '.join(counted)}",
            "name the class that the checkpoint was saved from: modelport.capture(folder, inputs, model_class='...')",
            f"load it as transformers does, with fresh values for what is missing: {name}.from_pretrained(folder)",
        )
        head, *rest = str(error).splitlines()
        shown = [f"   = {note}" for note in notes]
        return ExportError("\n".join([head, *shown, *rest]), [error.diagnostics[0] | {"notes": notes}])


def bind(
    model: Any,
    checkpoint: Checkpoint,
    dtype: torch.dtype,
    packed: Mapping[str, PackedWeight],
    adapter: Adapter | None = None,
) -> dict[str, Source]:
    """A source for each name of the model's state that the checkpoint has; ExportError (E0104) names every misfit.
    `packed` are the weights that it has as codes."""
    state = model.state_dict()
    misfits = Misfits()
    sources, conversions = _matched(model, checkpoint, packed, misfits)
    for conversion in conversions:
        sources |= _converted(model, conversion, misfits)
    names: dict[str, str] = {}
    if adapter is not None:
        names = adapter.names_in(model, _ties(model, checkpoint, sources))
        sources |= {names[name]: _saved(tensor) for name, tensor in adapter.saved.items() if name in names}
    wanted = wanted_dtypes(model, dtype)
    sources = {
        name: _fitted(name, source, state[name], wanted(name, state[name].dtype), misfits)
        for name, source in sources.items()
        if name in state
    }
    misfits.missing = _missing(model, sources)
    if misfits.missing or misfits.wrong:
        raise misfits.error(model, checkpoint)
    if adapter is not None:
        changed = {names[name]: change for name, change in adapter.changes.items()}
        sources |= {n: _merged(sources[n], c, adapter.transposes(model, n)) for n, c in changed.items() if n in sources}
    return sources


def _ties(model: Any, checkpoint: Checkpoint, sources: dict[str, Source]) -> dict[str, str]:
    """The weight that each further name of it stands for. Copies that are stored under such names are left out: they
    would not change with it."""
    found = {}
    for target, source in model.all_tied_weights_keys.items():
        one, two = (sources[name].as_stored if name in sources else None for name in (target, source))
        if one is not None and two is not None and checkpoint.same_bytes(one.name, two.name):
            del sources[target]
        if target not in sources:
            found[target] = source
    return found


def _saved(tensor: torch.Tensor) -> Source:
    """A weight that an adapter brings."""
    return Source((), ("of the adapter",), tensor.to("meta"), lambda _read: tensor)


def _merged(source: Source, change: Change, transposed: bool) -> Source:
    """With what an adapter adds, in the type that the model has the weight in."""

    def make(read: Read) -> torch.Tensor:
        return change.merged(source.make(read), transposed=transposed)

    steps = (*source.steps, "plus the adapter")
    return dataclasses.replace(source, steps=steps, make=make, uncast=None, packed=None)


def _stored(stored: StoredTensor) -> Source:
    return Source((stored,), (), _on_meta(stored), lambda read: read(stored))


def _on_meta(stored: StoredTensor) -> torch.Tensor:
    return torch.empty(stored.shape, dtype=stored.dtype, device="meta")


def _unpacked(weight: PackedWeight) -> Source:
    made = torch.empty(weight.shape, dtype=torch.float32, device="meta")
    return Source(tuple(weight.pieces.values()), ("dequantize",), made, weight.dequantized, packed=weight)


def _matched(
    model: Any, checkpoint: Checkpoint, packed: Mapping[str, PackedWeight], misfits: Misfits
) -> tuple[dict[str, Source], list[_Conversion]]:
    state = model.state_dict()
    inside = {stored.name for weight in packed.values() for stored in weight.pieces.values()}
    plain = {name: _stored(stored) for name, stored in checkpoint.tensors.items() if name not in inside}
    there = plain | {name: _unpacked(weight) for name, weight in packed.items()}
    mapping = get_model_conversion_mapping(model)
    renamings = [entry for entry in mapping if isinstance(entry, WeightRenaming)]
    converters = [entry for entry in mapping if isinstance(entry, WeightConverter)]
    by_pattern = {pattern: converter for converter in converters for pattern in converter.source_patterns}
    prefix = model.base_model_prefix
    sources: dict[str, Source] = {}
    conversions: dict[str, _Conversion] = {}
    # In the order in which transformers reads them: the experts of a layer are stacked in it.
    for known in sorted(there, key=dot_natural_key):
        name, pattern = rename_source_key(known, renamings, converters, prefix, state)
        if name not in state and known in state:
            name, pattern = rename_source_key(known, [], [], prefix, state)
        if name not in state:
            misfits.unused.append(known)  # a head of another class, a buffer that is computed now
        elif pattern is None:
            sources.setdefault(name, there[known])
        elif known in packed:
            misfits.wrong.append(f"{known}: codes that are a piece of a larger weight")
        else:
            conversion = conversions.setdefault(name, _Conversion(name, by_pattern[pattern]))
            conversion.pieces.append((pattern, checkpoint.tensors[known]))
    return sources, list(conversions.values())


def _converted(model: Any, conversion: _Conversion, misfits: Misfits) -> dict[str, Source]:
    """The weights that a conversion makes, found out on tensors without data."""
    pieces = tuple(stored for _, stored in conversion.pieces)
    steps = tuple(type(operation).__name__ for operation in conversion.converter.operations)
    try:
        made = conversion.run(model, _on_meta)
    except Exception as error:  # whatever the operations of transformers raise on tensors that do not fit
        misfits.wrong.append(f"{conversion.first}: its {len(pieces)} stored tensors do not fit together ({error})")
        return {}

    def maker(name: str) -> Callable[[Read], torch.Tensor]:
        return lambda read: conversion.run(model, read)[name]

    return {name: Source(pieces, steps, value, maker(name)) for name, value in made.items()}


def _fitted(name: str, source: Source, weight: torch.Tensor, dtype: torch.dtype, misfits: Misfits) -> Source:
    """The source in the dtype that the model has the weight in."""
    if source.made.shape != weight.shape:
        was, wanted = list(source.made.shape), list(weight.shape)
        misfits.wrong.append(f"{name}: shape {was} in the checkpoint, {wanted} in the model")
        return source
    if source.made.dtype == dtype:
        return source
    if source.made.dtype.is_floating_point != dtype.is_floating_point:
        misfits.wrong.append(f"{name}: {_short(source.made.dtype)} in the checkpoint, {_short(dtype)} in the model")
        return source
    return dataclasses.replace(
        source,
        steps=(*source.steps, f"to {_short(dtype)}"),
        made=source.made.to(dtype),
        make=lambda read: source.make(read).to(dtype),
        uncast=source,
    )


def _short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def wanted_dtypes(model: Any, dtype: torch.dtype) -> Callable[[str, torch.dtype], torch.dtype]:
    """The dtype of a weight in a model that transformers loads: some are kept in float32."""
    plan = dtype_plan(model, dtype)
    if not plan:
        return lambda _name, built: built
    pattern, by_group, _ = build_glob_alternation(list(plan))

    def wanted(name: str, built: torch.dtype) -> torch.dtype:
        found = pattern.search(name)
        return plan[by_group[found.lastgroup]] if found else built

    return wanted


def _missing(model: Any, sources: dict[str, Source]) -> list[str]:
    """Names of the state that have no source, are tied to none that has, and are none that a model can do without."""
    groups: defaultdict[int, set[str]] = defaultdict(set)  # names of one tensor
    state = model.state_dict(keep_vars=True)
    for name, tensor in state.items():
        groups[id(tensor)].add(name)
    tied = getattr(model, "all_tied_weights_keys", {})
    for target, source in tied.items():
        if target in state and source in state:
            both = groups[id(state[target])] | groups[id(state[source])]
            groups[id(state[target])] = groups[id(state[source])] = both
    at_hand = {name for names in groups.values() if not names.isdisjoint(sources) for name in names}
    for target, source in tied.items():  # more than two names for one weight
        if source in at_hand:
            at_hand.add(target)
    ignored = [r"num_batches_tracked$", *optional_weights(model)]
    pattern = re.compile("|".join(f"({p})" for p in ignored))
    return [name for name in state if name not in at_hand and not pattern.search(name)]
