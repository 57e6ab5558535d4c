"""The parts of a generative model with their example inputs, under the names that transformers.exporters gives them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import torch

from ..base.errors import problem
from .continuing import continuing, without_flags
from .watching import generating_parts, watch_generate, watched

Parts = dict[str, tuple[torch.nn.Module, dict[str, Any]]]
# Modules between an encoder and the language model have no accessor in transformers; these are the names they go by.
_PROJECTORS = ("multi_modal_projector", "connector", "embed_vision", "embed_audio")


def decompose_for_generation(
    model: Any, inputs: Mapping[str, Any], generation_config: Any = None, multi_token_decode: bool = False
) -> Parts:
    """`prefill` and `decode`; for a model that sees or hears, its encoders, projector, `language_model`, `lm_head` and
    `decode`. `inputs` are those of `model.generate`."""
    stages = decompose_prefill_decode(model, inputs, generation_config, multi_token_decode)
    if not is_multimodal(model):
        return stages
    part, prompt = stages["prefill"]
    read = prompt if part is model else dict(inputs)  # else the whole model reads the prompt in `generate` itself
    return decompose_multimodal(model, read) | {"decode": stages["decode"]}


def decompose_prefill_decode(
    model: Any, inputs: Mapping[str, Any], generation_config: Any = None, multi_token_decode: bool = False
) -> Parts:
    """The calls that `generate` makes for the prompt and for the next token, or the next three: of the model, or of one
    inside it that it hands over to."""
    parts = {"": model} | generating_parts(model)
    seen = watch_generate(model, inputs, parts, 4 if multi_token_decode else 2, generation_config)
    name = next((name for name in parts if len(seen[name]) > 1), None)
    if name is None:
        raise problem(
            "E0311",
            f"generate of {type(model).__name__} makes no calls for one token after the other",
            "OnnxExporter().export(model, inputs) exports a forward pass",
        )
    calls = seen[name]
    step = continuing(calls).inputs if multi_token_decode else without_flags(calls[1])
    return {"prefill": (parts[name], without_flags(calls[0])), "decode": (parts[name], step)}


def is_multimodal(model: Any) -> bool:
    """Whether the model has an encoder of images or sounds, and a language model that reads what they give."""
    parts = _parts(model)
    return "language_model" in parts and any(name.endswith("_encoder") for name in parts)


def decompose_multimodal(model: Any, inputs: Mapping[str, Any]) -> Parts:
    """Each part with the inputs that it gets in one forward pass."""
    parts = _parts(model)
    if not is_multimodal(model):
        raise problem(
            "E0311",
            f"{type(model).__name__} has no encoder of images or sounds beside a language model",
            "decompose_prefill_decode(model, inputs)",
        )
    with ExitStack() as stack, torch.no_grad():
        calls = {name: stack.enter_context(watched(part)) for name, part in parts.items()}
        model(**inputs)
    return {name: (part, without_flags(calls[name][-1])) for name, part in parts.items() if calls[name]}


def _parts(model: Any) -> dict[str, torch.nn.Module]:
    found: dict[str, torch.nn.Module] = {}
    if not hasattr(model, "get_encoder") or not hasattr(model, "get_decoder"):
        return found
    for modality in ("image", "audio"):
        encoder = model.get_encoder(modality=modality)
        if encoder is not None and encoder is not model:
            found[f"{modality}_encoder"] = encoder
    decoder = model.get_decoder()
    if decoder is not None and decoder is not model:
        found["language_model"] = decoder
    for name in (*_PROJECTORS, "lm_head"):
        for owner in (model, getattr(model, "base_model", model)):
            if name not in found and getattr(owner, name, None) is not None:
                found[name] = getattr(owner, name)
    return found
