"""What the arguments of a model that sees or hears are for, found by trial: one matters where another value makes a
difference."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from transformers.cache_utils import Cache

from ..base.structure import flatten
from .cutting import Cut, DoesNotRun, Fixed
from .features import Features, InMerge, InResult, Merges, candidates, perturbed, rows_of
from .watching import Call


@dataclasses.dataclass
class Roles:
    """Names of arguments. `media` are pictures, sounds and what belongs to them; `text` has a value a token; `carried`
    are those of the language model that follow from tokens and features. `word` is a token that stands for nothing but
    itself. `example` has the features of the example. `place` is the token that stands for features, where the model's
    own way to merge is none for any number of tokens."""

    word: int
    media: list[str]
    text: list[str]
    example: dict[str, torch.Tensor] = dataclasses.field(default_factory=dict)
    carried: list[str] = dataclasses.field(default_factory=list)
    text_of_embedding: list[str] = dataclasses.field(default_factory=list)
    text_of_decoder: list[str] = dataclasses.field(default_factory=list)
    place: int | None = None

    def without_media(self, call: Mapping[str, Any]) -> Call:
        return {name: value for name, value in call.items() if name not in self.media}


def roles_in(cut: Cut) -> Roles | None:
    """None where no features get to the language model among the embeddings."""
    ids = cut.call["input_ids"]
    media = [name for name, value in cut.call.items() if _is_media(cut, name, value)]
    text = [n for n, v in cut.call.items() if isinstance(v, torch.Tensor) and n not in (*media, "input_ids")]
    roles = Roles(_ordinary_token(cut.whole.config), media, text)
    want = cut.reached(cut.call, cut.as_it_was())
    roles.example = _find_features(cut, roles, want)
    if not roles.example or not _gives(cut, cut.call, cut.given(roles.example), want):
        return None
    words = cut.of_words(roles.without_media(cut.call) | {"input_ids": torch.full_like(ids, roles.word)})
    own = {id(value) for value in cut.call.values()}
    roles.carried = [n for n, v in want.items() if id(v) not in own and _has_tensors(v) and not alike(v, words.get(n))]
    if "inputs_embeds" not in roles.carried:
        return None
    for name in text:
        other = cut.reached(cut.call | {name: stretched(cut.call[name], ids)}, cut.as_it_was())
        if not all(alike(other.get(n), want[n]) for n in roles.carried):
            roles.text_of_embedding.append(name)
    roles.text_of_decoder = list(_text_of_decoder(cut, roles))
    if _ignores_features_of_one_token(cut, roles, want):
        roles.place = _place(cut, roles, want)
        return None if roles.place is None else roles
    return roles


def _is_media(cut: Cut, name: str, value: Any) -> bool:
    """What a producer takes, and any other tensor that has no value a token."""
    if name == "input_ids" or isinstance(value, Cache) or not _has_tensors(value):
        return False
    taken = [leaf for p in cut.producers for call in p.calls for leaf in flatten(call).tensors().values()]
    if any(leaf is other for leaf in flatten({name: value}).tensors().values() for other in taken):
        return True
    shape = cut.call["input_ids"].shape
    return not isinstance(value, torch.Tensor) or value.is_floating_point() or value.shape[-2:] != shape


def _ordinary_token(config: Any) -> int:
    """The first token that the config says nothing about."""
    special = set(_special_tokens(config.to_dict()))
    return next(token for token in range(len(special) + 1) if token not in special)


def _special_tokens(config: Mapping[Any, Any]) -> Iterator[int]:
    for key, value in config.items():
        if isinstance(value, Mapping):
            yield from _special_tokens(value)
        elif "token" in str(key):
            yield from (value if isinstance(value, list) else [value])


def _find_features(cut: Cut, roles: Roles, want: Call) -> dict[str, torch.Tensor]:
    """Fills the cut's features in: rows in the results of producers; or what is merged, and what of the results matters
    besides, where something is done to the rows before they are merged."""
    taken = {id(leaf) for p in cut.producers for call in p.calls for leaf in flatten(call).tensors().values()}
    further_media = [name for name in roles.media if id(cut.call[name]) not in taken]
    found = _in_results(cut, want, {})
    merges = _sources(cut, cut.as_it_was())
    if merges and (further_media or not found or not all(one.place.flat for one, _ in found)):
        names = _merge_names(cut, merges)
        found = _in_results(cut, want, dict(enumerate(merges)))
        found += [(Features(n, m, InMerge(i)), merges[i]) for i, (n, m) in enumerate(names)]
    cut.features = [one for one, _ in found]
    return {one.name: value for one, value in found}


def _sources(cut: Cut, fixed: Fixed) -> list[torch.Tensor]:
    sources: list[torch.Tensor] = []

    def see(_number: int, source: torch.Tensor) -> torch.Tensor:
        sources.append(rows_of(source))
        return source

    with Merges(see):
        cut.reached(cut.call, fixed)
    return sources


def _merge_names(cut: Cut, merges: list[torch.Tensor]) -> list[tuple[str, str]]:
    """Names for what is merged, with the modality of the producer that it depends on."""
    names: list[tuple[str, str]] = []
    for number, source in enumerate(merges):
        others = (_sources(cut, _all_other(cut, place))[number] for place in range(len(cut.producers)))
        follows = (p.modality for p, other in zip(cut.producers, others, strict=True) if not alike(other, source))
        modality = next(follows, cut.producers[-1].modality)
        count = sum(known == modality for _, known in names)
        names.append((f"{modality}_features" + (f"_{count}" if count else ""), modality))
    return names


def _all_other(cut: Cut, place: int) -> Fixed:
    """What producers gave, with other values in one of the results."""
    fixed = cut.as_it_was()
    for number, result in enumerate(fixed.results[place]):
        for path in candidates(result):
            result = perturbed(result, path)
        fixed.results[place] = [*fixed.results[place][:number], result, *fixed.results[place][number + 1 :]]
    return fixed


def _in_results(cut: Cut, want: Call, sources: dict[int, torch.Tensor]) -> list[tuple[Features, torch.Tensor]]:
    """Those parts of what producers gave that make a difference where this is merged."""
    found = []
    for place, producer in enumerate(cut.producers):
        if len(producer.results) > 1:
            continue
        (result,) = producer.results

        def makes_a_difference(other: Any, place: int = place) -> bool:
            results = cut.as_it_was().results
            fixed = Fixed([*results[:place], [other], *results[place + 1 :]], sources)
            return not _gives(cut, cut.call, fixed, want)

        paths = [path for path in candidates(result) if makes_a_difference(perturbed(result, path))]
        for path in paths:
            main = not sources and (len(paths) == 1 or path == ("pooler_output",))
            name = f"{producer.modality}_features" if main else f"{producer.modality}_{'.'.join(map(str, path))}"
            spot = InResult(place, path)
            spot.flat = not makes_a_difference(spot.put(result, spot.taken(result)))
            found.append((Features(name, producer.modality, spot), spot.taken(result)))
    return found


def _gives(cut: Cut, call: Call, fixed: Fixed, want: Call) -> bool:
    """Whether the language model is called with what is wanted."""
    try:
        with cut.trying():
            return _same(cut.reached(call, fixed), want)
    except DoesNotRun:
        return False


def _text_of_decoder(cut: Cut, roles: Roles) -> Iterator[str]:
    prompt = cut.calls[0]
    want = cut.step(prompt).logits
    for name, value in prompt.items():
        if not isinstance(value, torch.Tensor) or name in (*roles.media, "input_ids", "inputs_embeds"):
            continue
        without = {n: v for n, v in prompt.items() if n != name}
        if name in ("attention_mask", "position_ids") or not alike(cut.step(without).logits, want):
            yield name


def placed(cut: Cut, roles: Roles, want: Call) -> dict[str, torch.Tensor]:
    """For each modality, which tokens of the prompt stand for its features."""
    found = {}
    for modality in cut.modalities:
        own = {one.name for one in cut.features if one.modality == modality}
        changed = {name: value + 1 if name in own else value for name, value in roles.example.items()}
        other = cut.reached(cut.call, cut.given(changed))
        found[modality] = (other["inputs_embeds"] != want["inputs_embeds"]).any(-1)
    return found


def rows_for(cut: Cut, roles: Roles, found: Mapping[str, torch.Tensor], columns: slice) -> dict[str, torch.Tensor]:
    """As many rows of the example's features as some columns of the prompt stand for."""
    counts = {one.name: int(found[one.modality][:, columns].sum()) for one in cut.features}
    return {name: value[: counts[name]] for name, value in roles.example.items()}


def _ignores_features_of_one_token(cut: Cut, roles: Roles, want: Call) -> bool:
    found = placed(cut, roles, want)
    column = int(sum(found.values()).sum(0).argmax())
    columns = slice(column, column + 1)
    ids = cut.call["input_ids"][:, columns]
    text = {name: stretched(cut.call[name], ids) for name in roles.text} | {"input_ids": ids}
    rows = rows_for(cut, roles, found, columns)
    try:
        with cut.trying():
            made = cut.reached(cut.call | text, cut.given(rows))
            others = cut.reached(cut.call | text, cut.given({name: value + 1 for name, value in rows.items()}))
    except DoesNotRun:  # a model that fails on a token alone would not read it in a step
        return True
    return alike(made["inputs_embeds"], others["inputs_embeds"])


def _place(cut: Cut, roles: Roles, want: Call) -> int | None:
    """The token in whose places the model puts rows, one after the other and nothing else."""
    ids = cut.call["input_ids"]
    tokens = ids[sum(placed(cut, roles, want).values()) > 0].unique().tolist()
    if len(tokens) != 1 or roles.carried != ["inputs_embeds"] or len(roles.example) != 1:
        return None
    (rows,) = roles.example.values()
    words = cut.of_words(roles.without_media(cut.call))
    return tokens[0] if alike(put_in_place(ids, words, tokens[0], rows), want["inputs_embeds"]) else None


def put_in_place(ids: torch.Tensor, words: Call, token: int | None, rows: torch.Tensor) -> torch.Tensor:
    return words["inputs_embeds"].masked_scatter((ids == token)[..., None], rows)


def stretched(value: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    """Ones in the shape that an argument with a value a token has for these tokens."""
    return torch.ones((*value.shape[:-2], *ids.shape), dtype=value.dtype, device=ids.device)


def alike(first: Any, second: Any) -> bool:
    if isinstance(first, Cache):
        return isinstance(second, Cache)
    a, b = flatten({"": first}), flatten({"": second})
    return a.names == b.names and all(_equal(x, y) for x, y in zip(a.leaves, b.leaves, strict=True))


def _equal(a: Any, b: Any) -> bool:
    if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor):
        return type(a) is type(b) and a == b
    return a.shape == b.shape and a.dtype == b.dtype and torch.allclose(a, b, atol=1e-5, rtol=1e-5, equal_nan=True)


def _same(call: Call, other: Call) -> bool:
    return call.keys() == other.keys() and all(alike(value, other[name]) for name, value in call.items())


def _has_tensors(value: Any) -> bool:
    return bool(flatten({"": value}).tensors())
