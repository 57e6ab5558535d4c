"""Models that see or hear, in parts: encoders that make features, an embedding that puts them among the tokens, and a
decoder that reads embeddings.

The parts run the model's own code up to a cut or from it on, see cutting.py; finding.py finds the cut, roles.py what the
arguments are for."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import torch
from transformers.cache_utils import Cache

from ..errors import ExportError
from ..structure import flatten, unflatten
from .components import Export, Part
from .continuing import BATCH, PAST, SEQUENCE, STEPS, Example, continuing
from .cutting import Cut
from .features import InMerge
from .finding import find_cut, sees_or_hears
from .roles import Roles, alike, placed, put_in_place, roles_in, rows_for, stretched
from .watching import Call

_FILES = {"image": "vision_encoder", "video": "video_encoder", "audio": "audio_encoder"}


class Encoder(torch.nn.Module):
    """Pictures or sound to features."""

    def __init__(self, cut: Cut, modality: str):
        super().__init__()
        self.model, self.config = cut.whole, cut.whole.config
        self.cut, self.modality = cut, modality

    def forward(self, **given: torch.Tensor) -> dict[str, torch.Tensor]:
        return self.cut.made(self.modality, self.cut.call | given)


class Embedding(torch.nn.Module):
    """Tokens and features to what the language model takes. Without features, which is every step after the prompt, it
    gives what the model gives for text alone."""

    def __init__(self, cut: Cut, roles: Roles):
        super().__init__()
        self.model, self.config = cut.whole, cut.whole.config
        self.cut, self.roles = cut, roles

    def forward(self, input_ids: torch.Tensor, **given: torch.Tensor) -> dict[str, Any]:
        features = {name: given.pop(name) for name in self.roles.example}
        rows = sum(value.shape[0] for value in features.values())
        some = torch.full((1,), rows, device=input_ids.device) > 0
        text = {name: stretched(self.cut.call[name], input_ids) for name in self.roles.text} | given
        # A token that stands for a piece of an image may come up without one: it is then a word like others.
        seen = text | {"input_ids": torch.where(some, input_ids, self.roles.word)}
        words = self.of_words(text | {"input_ids": input_ids})
        merged = self._placed(seen, features) if self.roles.place is not None else self._merged(seen, features)
        return {name: _either(some, merged[name], words.get(name)) for name in self.roles.carried}

    def _merged(self, text: Mapping[str, torch.Tensor], features: Mapping[str, torch.Tensor]) -> Call:
        return self.cut.reached(self.cut.call | text, self.cut.given(features))

    def _placed(self, text: Mapping[str, torch.Tensor], features: Mapping[str, torch.Tensor]) -> Call:
        ((_, rows),) = features.items()
        return {"inputs_embeds": put_in_place(text["input_ids"], self.of_words(text), self.roles.place, rows)}

    def of_words(self, text: Mapping[str, torch.Tensor]) -> Call:
        return self.cut.of_words(self.roles.without_media(self.cut.call) | text)


def _either(some: torch.Tensor, merged: Any, words: Any) -> Any:
    return torch.where(some, merged, words) if isinstance(words, torch.Tensor) else merged


class Decoder(torch.nn.Module):
    """Embeddings to logits, with a cache. Some models do otherwise where there are pictures: `with_media` gives them the
    example's, of which no rows are left."""

    def __init__(self, cut: Cut, roles: Roles, with_media: bool):
        super().__init__()
        self.model, self.config = cut.stepping, cut.stepping.config
        self.cut, self.roles = cut, roles
        self.media = {name: cut.call[name] for name in roles.media if with_media}
        self.no_rows = cut.given({name: value[:0] for name, value in roles.example.items()})

    def forward(self, inputs_embeds: torch.Tensor, **given: Any) -> dict[str, Any]:
        carried = {name: given.pop(name) for name in self.roles.carried if name in given}
        words = torch.full(inputs_embeds.shape[:2], self.roles.word, device=inputs_embeds.device)
        call = given | self.media | {"input_ids": words, "use_cache": True, "return_dict": True}
        result = self.cut.entered(call, {"inputs_embeds": inputs_embeds} | carried, self.no_rows)
        return {"logits": result.logits, "past_key_values": result.past_key_values}


def multimodal_components(
    model: Any, inputs: Mapping[str, Any], export: Export, generation_config: Any = None
) -> dict[str, Any] | None:
    """None where the model, or this example, has no features that are put among the tokens."""
    if not sees_or_hears(model):
        return None
    with torch.no_grad():
        cut = find_cut(model, inputs, generation_config)
        roles = roles_in(cut) if cut is not None else None
        if cut is None or roles is None:
            return None
        embedding = Embedding(cut, roles).eval()
        parts = {"embed_tokens": _embedding(cut, roles, embedding)}
        parts["decoder_model_merged"] = _decoder(cut, roles, embedding)
        encoders = {_FILES[modality]: _encoder(cut, roles, modality) for modality in _modalities(cut)}
        programs = {name: _for_any_number(export, name, part) for name, part in encoders.items()}
        return programs | {name: export(name, part) for name, part in parts.items()}


def _modalities(cut: Cut) -> list[str]:
    return list(dict.fromkeys(one.modality for one in cut.features))


def _encoder(cut: Cut, roles: Roles, modality: str) -> Part:
    """Its inputs are what its producers take, or all media where that is made from them first."""
    media = {name: cut.call[name] for name in roles.media if isinstance(cut.call[name], torch.Tensor)}
    if any(isinstance(one.place, InMerge) for one in cut.features):
        return Part(Encoder(cut, modality).eval(), media)
    calls = [call for producer in cut.producers if producer.modality == modality for call in producer.calls]
    taken = [leaf for call in calls for leaf in flatten(call).tensors().values()]
    own = {name: value for name, value in media.items() if any(value is leaf for leaf in taken)}
    follows = any(not any(leaf is value for value in cut.call.values()) for leaf in taken)
    return Part(Encoder(cut, modality).eval(), media if follows else own)


def _for_any_number(export: Export, name: str, part: Part) -> Any:
    """An encoder whose program belongs to a number of pictures is exported for one, to be run for each."""
    program = export(name, part)
    counts = {len(value) for value in part.inputs.values()}
    sizes = {name: shape[0] for name, _, shape in program.captured.program.inputs()}
    fixed = any(sizes[name].isdigit() for name, value in part.inputs.items() if value.is_floating_point())
    if len(counts) > 1 or counts == {1} or not fixed:
        return program
    one = {name: value[:1] for name, value in part.inputs.items()}
    try:
        return export(name, Part(part.module, one))
    except ExportError:
        return program


def _embedding(cut: Cut, roles: Roles, embedding: Embedding) -> Part:
    text = {name: cut.call[name] for name in ("input_ids", *roles.text_of_embedding)}
    axes = {name: {value.dim() - 2: BATCH, value.dim() - 1: SEQUENCE} for name, value in text.items()}
    axes |= {one.name: {0: _rows(one.modality)} for one in cut.features}

    def serves(captured: Any) -> bool:
        """Also a step, and tokens that stand for features where there are none."""
        for ids in (cut.calls[1]["input_ids"], cut.call["input_ids"]):
            given = {"input_ids": ids} | {name: stretched(cut.call[name], ids) for name in roles.text_of_embedding}
            got = captured.run(**given, **{name: value[:0] for name, value in roles.example.items()})
            fill = {name: stretched(cut.call[name], ids) for name in roles.text}
            if not alike(got["inputs_embeds"], embedding.of_words(fill | given)["inputs_embeds"]):
                return False
        return True

    return Part(embedding, text | roles.example, _shapes(axes, cut), serves)


def _rows(modality: str) -> str:
    return f"num_{modality}_tokens"


def _shapes(axes: Mapping[str, Mapping[int, str]], cut: Cut) -> dict[str, dict[int, Any]]:
    may_be_empty = {PAST, *map(_rows, _modalities(cut))}
    dims = {role: torch.export.Dim(role, min=0) for role in may_be_empty}
    return {name: {axis: dims.get(role, role) for axis, role in own.items()} for name, own in axes.items()}


def _decoder(cut: Cut, roles: Roles, embedding: Embedding) -> Part:
    prompt = cut.calls[0] | {"input_ids": cut.call["input_ids"]}
    read = embedding(**{n: cut.call[n] for n in ("input_ids", *roles.text_of_embedding)}, **roles.example)
    calls = [_decoder_call(roles, prompt, read)]
    for call in cut.calls[1:]:
        ids = call["input_ids"]
        fill = {name: stretched(cut.call[name], ids) for name in roles.text} | {"input_ids": ids}
        words = embedding.of_words(fill)
        calls.append(_decoder_call(roles, call, {name: words[name] for name in roles.carried if name in words}))
    example = continuing(calls)
    _add_carried(cut, roles, embedding, example, read)

    checks = [(cut.step(own).logits, _complete(call, example)) for own, call in zip(cut.calls[:2], calls, strict=False)]

    def gives_logits(run: Callable[..., Any]) -> bool:
        """Whether the prompt and a step give the logits of the model."""
        results = [(run(**copy.deepcopy(call))["logits"], want) for want, call in checks]
        return all(torch.allclose(got[:, -want.shape[1] :], want, atol=1e-3, rtol=1e-3) for got, want in results)

    decoders = [Decoder(cut, roles, with_media).eval() for with_media in (False, True)]
    decoder = next((one for one in decoders if gives_logits(one)), decoders[0])
    takes_count = "logits_to_keep" in inspect.signature(cut.stepping.forward).parameters
    shapes = _shapes(example.axes, cut)
    return Part(decoder, example.inputs, shapes, lambda captured: gives_logits(captured.run), takes_count)


def _decoder_call(roles: Roles, call: Call, made: Call) -> Call:
    """A call of the model as one of the decoder. What it gets for the prompt alone says nothing of later tokens: 0."""
    text = {n: call[n] if n in call else torch.zeros_like(call["input_ids"]) for n in roles.text_of_decoder}
    return made | text | {name: value for name, value in call.items() if isinstance(value, Cache)}


def _add_carried(cut: Cut, roles: Roles, embedding: Embedding, example: Example, read: Call) -> None:
    """What the embedding gives to the decoder only where there are features: the example gets that of three tokens of the
    prompt of which some stand for features."""
    further = [name for name in roles.carried if name not in example.inputs]
    if not further:
        return
    ids = cut.call["input_ids"]
    found = placed(cut, roles, read)
    last = int(next(iter(found.values())).any(0).nonzero()[-1])
    start = min(last, ids.shape[1] - STEPS)
    window = slice(start, start + STEPS)
    text = {name: cut.call[name][..., window] for name in ("input_ids", *roles.text_of_embedding)}
    made = embedding(**text, **rows_for(cut, roles, found, window))
    rows = {len(roles.example[one.name]): _rows(one.modality) for one in cut.features}
    whole = flatten({name: read[name] for name in further}).tensors()
    for leaf, tensor in flatten({name: made[name] for name in further}).tensors().items():
        axes = example.axes.setdefault(leaf, {})
        for axis, (before, now) in enumerate(zip(whole[leaf].shape, tensor.shape, strict=True)):
            if before != now:
                axes[axis] = SEQUENCE if now == STEPS and before == ids.shape[1] else rows[before]
            elif now == len(ids) and BATCH not in axes.values():
                axes[axis] = BATCH
    example.inputs |= {name: made[name] for name in further}


def _complete(call: Call, example: Example) -> Call:
    """A call with everything that the graph takes: caches with nothing in them, and nothing carried for a step."""
    missing = [name for name in example.inputs if not flatten({name: call.get(name)}).tensors()]
    sizes = {PAST: 0, SEQUENCE: call["inputs_embeds"].shape[1]}
    return call | {name: _nothing(name, example, sizes) for name in missing}


def _nothing(name: str, example: Example, sizes: Mapping[str, int]) -> Any:
    """Zeros in the structure of an input; axes of which nothing is said, other than the batch, are empty."""
    flat = flatten({name: copy.deepcopy(example.inputs[name])})
    leaves = []
    for leaf, value in zip(flat.names, flat.leaves, strict=True):
        if isinstance(value, torch.Tensor):
            roles = {axis: role for axis, role in example.axes[leaf].items() if role != BATCH}
            shape = [sizes.get(roles[axis], 0) if axis in roles else size for axis, size in enumerate(value.shape)]
            value = value.new_zeros(shape)
        leaves.append(value)
    return unflatten(leaves, flat.spec)[name]
