"""Models that see or hear, in the parts that transformers.js runs. It puts features among the tokens itself, and gives
the decoder embeddings, a mask, positions and a cache.

What the decoder takes besides has to come with the embeddings. They get further columns: what the encoder makes besides
its features, and last a 1 where a token stands for features. All of them are 0 for words."""

from __future__ import annotations

import copy
import dataclasses
import json
from collections.abc import Callable, Mapping
from typing import Any

import torch
from transformers.cache_utils import Cache

from ..base.errors import ExportError
from ..base.structure import flatten, unflatten
from ..exporters.onnx import PartExport
from ..generation.continuing import STEPS, Example
from ..generation.cutting import Cut
from ..generation.encoders import encoder_name, encoder_part
from ..generation.filling import complete
from ..generation.finding import find_cut
from ..generation.modules import Embedding, Encoder
from ..generation.multimodal import decoder_part, for_any_number
from ..generation.part import Part
from ..generation.prompts import generous
from ..generation.roles import Roles, alike, placed, roles_in, rows_for, stretched
from ..generation.watching import Call
from .own_parts import refuse_other_values
from .transformers_js_classes import KINDS_OF_POSITION

EMBEDDING, DECODER = "embed_tokens", "decoder_model_merged"

Fill = Callable[[torch.Tensor], Any]


class Words(torch.nn.Module):
    """The embedding of tokens alone."""

    def __init__(self, model: Any, further_columns: int = 0):
        super().__init__()
        self.embedding, self.further_columns = model.get_input_embeddings(), further_columns

    def forward(self, input_ids: torch.Tensor) -> dict[str, torch.Tensor]:
        embeds = self.embedding(input_ids)
        more = embeds.new_zeros((*embeds.shape[:2], self.further_columns))
        return {"inputs_embeds": torch.cat([embeds, more], -1) if self.further_columns else embeds}


def words(model: Any, further_columns: int = 0) -> Part:
    axes = {"input_ids": {0: "batch_size", 1: "sequence_length"}}
    example = {"input_ids": torch.zeros(2, 3, dtype=torch.int64)}
    return Part(Words(model, further_columns).eval(), example, axes)


def words_program(model: Any, config: Any) -> dict[str, Any]:
    return _exported(model, {EMBEDDING: words(model)}, config)


def fitting_programs(
    model: Any, inputs: Mapping[str, Any], given: frozenset[str], config: Any
) -> dict[str, Any] | None:
    """The parts, exported, that have a decoder that takes nothing but what is given and a cache; None where that cannot
    be."""
    try:
        parts = fitting_parts(model, inputs, given)
    except Exception:  # the model is run in ways in which it need not run
        return None
    try:
        return None if parts is None else _exported(model, parts, config)
    except ExportError:
        return None


def _exported(model: Any, parts: Mapping[str, Part], config: Any) -> dict[str, Any]:
    export = PartExport(config, model)
    programs = {name: for_any_number(export, name, part) for name, part in parts.items()}
    for name, part in parts.items():
        refuse_other_values(name, programs[name], part.module, part.inputs)
        if isinstance(part.module, _DecoderOfColumns) and part.module.same_for_all:
            # A check makes prompts by rules of its own, and has to know what this one takes them for.
            programs[name].captured.origin = {"of_prompts": json.dumps(part.module.same_for_all)}
    return programs


def fitting_parts(model: Any, inputs: Mapping[str, Any], given: frozenset[str]) -> dict[str, Part] | None:
    """The parts with a decoder that takes nothing but what is given and a cache; None where that cannot be."""
    with torch.no_grad():
        cut = find_cut(model, generous(model, inputs))
        roles = None if cut is None or cut.hands_over else roles_in(cut)
        if cut is None or roles is None or len(cut.modalities) != 1 or not _is_of_words(cut, roles, model):
            return None
        places = placed(cut, roles, cut.reached(cut.call, cut.as_it_was()))[cut.modalities[0]]
        cut = _as_given(cut, roles, places, given)
        if cut is None:
            return None
        embedding = Embedding(cut, roles).eval()
        decoder = decoder_part(cut, roles, embedding)
        lacking = [n for n, v in decoder.inputs.items() if n not in given and not isinstance(v, Cache)]
        positions = decoder.inputs.get("position_ids")
        if positions is not None and positions.dim() == 3:
            decoder = dataclasses.replace(decoder, module=_WithoutGaps(decoder.module).eval())
        if not lacking:
            return {EMBEDDING: words(model), DECODER: decoder}
        return _with_columns(_Seen(cut, roles, places, embedding), decoder, lacking)


class _WithoutGaps(torch.nn.Module):
    """The decoder with positions that are nowhere larger than the number of tokens before. None are that `generate`
    makes: what is seen takes up no more of them than it has tokens. The client, though, goes on far behind the end of a
    prompt in which nothing is seen."""

    def __init__(self, decoder: torch.nn.Module):
        super().__init__()
        self.decoder, self.config = decoder, decoder.config

    def forward(self, position_ids: torch.Tensor, attention_mask: torch.Tensor, **given: Any) -> dict[str, Any]:
        before = (attention_mask.cumsum(-1) - 1)[:, -position_ids.shape[-1] :]
        positions = torch.minimum(position_ids, before.clamp(min=0))
        return self.decoder(position_ids=positions, attention_mask=attention_mask, **given)


def _is_of_words(cut: Cut, roles: Roles, model: Any) -> bool:
    """Whether text is embedded by the table of words and nothing else."""
    ids = cut.calls[1]["input_ids"]
    fill = {name: stretched(cut.call[name], ids) for name in roles.text} | {"input_ids": ids}
    made = cut.of_words(roles.without_media(cut.call) | fill)
    return alike(made.get("inputs_embeds"), model.get_input_embeddings()(ids))


def _as_given(cut: Cut, roles: Roles, places: torch.Tensor, given: frozenset[str]) -> Cut | None:
    """The calls of generate as the client would make them: three kinds of positions, and for tokens only such kinds as
    follow from whether they stand for features."""
    calls = [dict(call) for call in cut.calls]
    for call in calls:
        positions = call.get("position_ids")
        if positions is not None and positions.dim() == 3:  # some models put those of the text alone first
            call["position_ids"] = positions[-KINDS_OF_POSITION:]
    for name in roles.text_of_decoder:
        if name not in given:
            kinds = _kinds(calls, name, places)
            if kinds is None:
                return None
            calls[0][name] = torch.where(places, kinds.of_features, kinds.of_words).to(calls[0][name].dtype)
    return dataclasses.replace(cut, calls=calls)


@dataclasses.dataclass
class _Kinds:
    of_words: int
    of_features: int


def _kinds(calls: list[Call], name: str, places: torch.Tensor) -> _Kinds | None:
    """What a value a token is for words, and for tokens that stand for features."""
    prompt, new = calls[0][name], calls[1].get(name)
    seen = calls[0]["attention_mask"].bool()
    if prompt.shape != places.shape or prompt.is_floating_point():
        return None
    of_words, of_features = (prompt[seen & where].unique().tolist() for where in (~places, places))
    if len(of_words) != 1 or len(of_features) != 1:
        return None
    # Where generate gives words of its own another value than those of the prompt, it tells prompt from answer.
    tells_the_answer = new is not None and new.shape == calls[1]["input_ids"].shape and bool((new != of_words[0]).all())
    return _Kinds(of_words[0], of_words[0] if tells_the_answer else of_features[0])


@dataclasses.dataclass
class _Seen:
    """A model as it was seen generating; `places` says which tokens of the prompt stand for features."""

    cut: Cut
    roles: Roles
    places: torch.Tensor
    embedding: Embedding

    @property
    def modality(self) -> str:
        return self.cut.modalities[0]

    @property
    def read(self) -> Call:
        """What the language model is given for the prompt."""
        text = {name: self.cut.call[name] for name in ("input_ids", *self.roles.text_of_embedding)}
        return self.embedding(**text, **self.roles.example)


class _Columns:
    """Of a row of embeddings: first the embedding, then further features by name, last whether there are features."""

    def __init__(self, seen: _Seen):
        self.main = f"{seen.modality}_features"
        self.width = seen.roles.example[self.main].shape[-1]
        self.of: dict[str, slice] = {}
        end = self.width
        for name, value in seen.roles.example.items():
            if name != self.main:
                self.of[name] = slice(end, end + value.shape[-1])
                end += value.shape[-1]
        self.count = end + 1

    def of_features(self, made: Mapping[str, torch.Tensor]) -> torch.Tensor:
        first = made[self.main]
        return torch.cat([first, *(made[name] for name in self.of), first.new_ones((first.shape[0], 1))], -1)

    def joined(self, embeds: torch.Tensor, places: torch.Tensor, features: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Embeddings that features are among, with the further columns."""
        whole = embeds.new_zeros((*embeds.shape[:2], self.count))
        whole[places] = self.of_features(features)
        whole[..., : self.width] = embeds
        return whole


class _EncoderOfColumns(Encoder):
    def __init__(self, cut: Cut, modality: str, columns: _Columns):
        super().__init__(cut, modality)
        self.columns = columns

    def forward(self, **given: torch.Tensor) -> dict[str, torch.Tensor]:
        return {self.columns.main: self.columns.of_features(super().forward(**given))}


class _DecoderOfColumns(torch.nn.Module):
    def __init__(self, decoder: torch.nn.Module, columns: _Columns, fills: Mapping[str, Fill]):
        super().__init__()
        self.decoder, self.config = decoder, decoder.config
        self.columns, self.fills = columns, dict(fills)
        self.same_for_all: dict[str, int] = {}  # what has one value for each token of a prompt

    def forward(self, inputs_embeds: torch.Tensor, **given: Any) -> dict[str, Any]:
        filled = {name: fill(inputs_embeds) for name, fill in self.fills.items()}
        return self.decoder(inputs_embeds=inputs_embeds[..., : self.columns.width], **given, **filled)


def _with_columns(seen: _Seen, decoder: Part, lacking: list[str]) -> dict[str, Part] | None:
    cut, roles = seen.cut, seen.roles
    columns = _Columns(seen)
    fills = {name: _fill(seen, columns, name) for name in lacking}
    if not all(fills.values()):
        return None
    module = _DecoderOfColumns(decoder.module, columns, {n: fill for n, fill in fills.items() if fill}).eval()
    kinds = {name: _kinds(cut.calls, name, seen.places) for name in lacking if name in roles.text_of_decoder}
    module.same_for_all = {n: own.of_words for n, own in kinds.items() if own and own.of_words == own.of_features}
    length = cut.call["input_ids"].shape[1]
    start = min(int(seen.places.any(0).nonzero()[-1]), length - STEPS)
    window = slice(start, start + STEPS)
    rows = rows_for(cut, roles, {seen.modality: seen.places}, window)
    joined = columns.joined(decoder.inputs["inputs_embeds"], seen.places[:, window], rows)
    example = {name: value for name, value in decoder.inputs.items() if name not in lacking}
    example["inputs_embeds"] = joined
    shapes = {leaf: axes for leaf, axes in decoder.dynamic_shapes.items() if leaf.split(".")[0] not in lacking}
    encoder = encoder_part(cut, roles.media, seen.modality)
    return {
        encoder_name(seen.modality): Part(_EncoderOfColumns(cut, seen.modality, columns).eval(), encoder.inputs),
        EMBEDDING: words(cut.whole, columns.count - columns.width),
        DECODER: dataclasses.replace(
            decoder, module=module, inputs=example, dynamic_shapes=shapes, serves=_check(seen, columns, example, shapes)
        ),
    }


def _fill(seen: _Seen, columns: _Columns, name: str) -> Fill | None:
    """How an argument of the decoder follows from its embeddings; None where it does not."""
    if name in seen.roles.text_of_decoder:
        kinds = _kinds(seen.cut.calls, name, seen.places)
        dtype = seen.cut.calls[0][name].dtype
        if kinds is None:
            return None
        return lambda whole: torch.where(_marked(whole), kinds.of_features, kinds.of_words).to(dtype)
    flat = flatten({name: seen.read[name]})
    sources = [_source(seen, columns, leaf) for leaf in flat.leaves]
    if not all(sources):
        return None
    return lambda whole: unflatten([source(whole) for source in sources if source], flat.spec)[name]


def _marked(whole: torch.Tensor) -> torch.Tensor:
    return whole[..., -1] > 0.5


def _source(seen: _Seen, columns: _Columns, leaf: Any) -> Fill | None:
    """Where among the columns a tensor is that the embedding gives besides embeddings."""
    if alike(leaf, seen.places):
        return _marked
    found = next((own for name, own in columns.of.items() if alike(leaf, seen.roles.example[name])), None)
    return None if found is None else lambda whole: whole[..., found][_marked(whole)]


def _check(seen: _Seen, columns: _Columns, inputs: Call, shapes: Mapping[str, Any]) -> Callable[[Any], bool]:
    """Whether a program gives, for the prompt and for a step, the logits of the model."""
    cut, roles = seen.cut, seen.roles
    axes = {leaf: {axis: getattr(dim, "__name__", dim) for axis, dim in own.items()} for leaf, own in shapes.items()}
    example = Example(inputs, axes)
    prompt, step = cut.calls[0], cut.calls[1]
    ids = step["input_ids"]
    fill = {name: stretched(cut.call[name], ids) for name in roles.text} | {"input_ids": ids}
    of_step = seen.embedding.of_words(fill)["inputs_embeds"]
    nothing = {name: value[:0] for name, value in roles.example.items()}
    embeds = [
        columns.joined(seen.read["inputs_embeds"], seen.places, roles.example),
        columns.joined(of_step, torch.zeros_like(ids, dtype=torch.bool), nothing),
    ]
    checks = []
    for call, whole in zip((prompt, step), embeds, strict=True):
        own = {n: v for n, v in call.items() if n in inputs and n != "inputs_embeds"} | {"inputs_embeds": whole}
        checks.append((cut.step(call).logits, complete(own, example)))

    def serves(captured: Any) -> bool:
        results = [(captured.run(**copy.deepcopy(call))["logits"], want) for want, call in checks]
        return all(torch.allclose(got[:, -want.shape[1] :], want, atol=1e-3, rtol=1e-3) for got, want in results)

    return serves
