"""Models that see or hear, in parts: encoders that make features, an embedding that puts them among the tokens, and a
decoder that reads embeddings.

finding.py finds where to cut, roles.py what the arguments are for; modules.py has the parts."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping
from typing import Any

import torch
from transformers.cache_utils import Cache

from ..base.errors import ExportError, problem
from ..base.structure import flatten
from .continuing import BATCH, SEQUENCE, STEPS, Example, continuing
from .cutting import Cut, DoesNotRun
from .encoders import encoder_name, encoder_part
from .filling import gives_logits, rows_axis, shapes
from .finding import find_cut, sees_or_hears
from .modules import Decoder, Embedding, Encoder
from .part import Export, Part
from .reading import reading_parts
from .roles import Roles, alike, placed, roles_in, rows_for, stretched
from .watching import Call


def multimodal_components(
    model: Any, inputs: Mapping[str, Any], export: Export, generation_config: Any = None
) -> dict[str, Any] | None:
    """None where the model, or this example, has no features, or they get to the tokens in a way that is not seen."""
    if not sees_or_hears(model):
        return None
    with torch.no_grad():
        cut = find_cut(model, inputs, generation_config)
        if cut is None:
            if any(isinstance(value, torch.Tensor) and value.is_floating_point() for value in inputs.values()):
                _say_that_it_is_whole(model, "no module in it takes embeddings among which features were put")
            return None
        try:
            with cut.trying():
                parts = _parts(cut)
            reason = "what the encoder makes does not get to the language model among its embeddings"
        except (DoesNotRun, *_DO_NOT_FIT) as error:
            parts, reason = None, _first_line(error)
        try:
            if parts is not None:
                return {name: for_any_number(export, name, part) for name, part in parts.items()}
        except ExportError as error:
            if cut.hands_over:
                raise
            reason = _first_line(error)  # in one piece with the prompt it may work
    if cut.hands_over:
        raise problem(
            "E0311",
            f"generate of {type(model).__name__} hands over to the {type(cut.stepping).__name__} inside it, "
            f"and what it hands over cannot be cut off: {reason}",
            "OnnxExporter().export(part, inputs) exports its parts one by one",
        )
    _say_that_it_is_whole(model, reason)
    return None


def _say_that_it_is_whole(model: Any, reason: str) -> None:
    warnings.warn(
        f"{type(model).__name__} was not cut into encoder, embedding and decoder: {reason}; "
        "the decoder reads the prompt with its pictures or sound",
        stacklevel=3,
    )


# What tensors raise whose sizes do not go together, where a part is run on pieces of the example.
_DO_NOT_FIT = (RuntimeError, IndexError, ValueError)


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def _parts(cut: Cut) -> dict[str, Part] | None:
    if cut.hands_over and not _hands_over_as_given(cut):
        return None
    roles = roles_in(cut)
    if roles is None:
        return reading_parts(cut) if cut.hands_over else None
    embedding = Embedding(cut, roles).eval()
    parts = {encoder_name(modality): encoder_part(cut, roles.media, modality) for modality in cut.modalities}
    return parts | {
        "embed_tokens": _embedding(cut, roles, embedding),
        "decoder_model_merged": decoder_part(cut, roles, embedding),
    }


def _hands_over_as_given(cut: Cut) -> bool:
    """Whether the model inside gets the tokens that the whole model is given: who runs the files has no others."""
    handed = cut.reached(cut.call, cut.as_it_was())
    return all(alike(handed.get(name), cut.call.get(name)) for name in ("input_ids", "attention_mask"))


def for_any_number(export: Export, name: str, part: Part) -> Any:
    """An encoder whose program belongs to a number of pictures is exported for one, to be run for each."""
    program = export(name, part)
    if not isinstance(part.module, Encoder):
        return program
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
    axes |= {one.name: {0: rows_axis(one.modality)} for one in cut.features}

    def serves(captured: Any) -> bool:
        """The prompt; also a step, and tokens that stand for features where there are none."""
        if not alike(captured.run(**text, **roles.example), embedding(**text, **roles.example)):
            return False
        for ids in (cut.calls[1]["input_ids"], cut.call["input_ids"]):
            fill = {name: stretched(cut.call[name], ids) for name in roles.text} | {"input_ids": ids}
            given = {name: fill[name] for name in text}
            got = captured.run(**given, **{name: value[:0] for name, value in roles.example.items()})
            want = embedding.of_words(fill)
            if not all(alike(got[name], want[name]) for name in roles.carried if name in want):
                return False
        return True

    return Part(embedding, text | roles.example, shapes(axes, cut), serves)


def decoder_part(cut: Cut, roles: Roles, embedding: Embedding) -> Part:
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
    check = gives_logits(cut, calls, example)
    decoders = [Decoder(cut, roles, with_media).eval() for with_media in (False, True)]
    decoder = next((one for one in decoders if check(one)), decoders[0])
    return Part(
        decoder,
        example.inputs,
        shapes(example.axes, cut),
        lambda captured: check(captured.run),
        gives_logits=takes_a_count(cut),
    )


def takes_a_count(cut: Cut) -> bool:
    """Whether the model can be told how many logits to give."""
    return "logits_to_keep" in inspect.signature(cut.stepping.forward).parameters


def _decoder_call(roles: Roles, call: Call, made: Call) -> Call:
    """A call of the model as one of the decoder. What it gets for the prompt alone says nothing of later tokens: 0."""
    text = {n: call[n] if n in call else torch.zeros_like(call["input_ids"]) for n in roles.text_of_decoder}
    return made | text | {name: value for name, value in call.items() if isinstance(value, Cache)}


def _add_carried(cut: Cut, roles: Roles, embedding: Embedding, example: Example, read: Call) -> None:
    """What the embedding gives to the decoder only where there are features: the example gets that of three tokens of
    the prompt of which some stand for features."""
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
    rows = {len(roles.example[one.name]): rows_axis(one.modality) for one in cut.features}
    whole = flatten({name: read[name] for name in further}).tensors()
    for leaf, tensor in flatten({name: made[name] for name in further}).tensors().items():
        axes = example.axes.setdefault(leaf, {})
        for axis, (before, now) in enumerate(zip(whole[leaf].shape, tensor.shape, strict=True)):
            if before != now:
                axes[axis] = SEQUENCE if now == STEPS and before == ids.shape[1] else rows[before]
            elif now == len(ids) and BATCH not in axes.values():
                axes[axis] = BATCH
    example.inputs |= {name: made[name] for name in further}
