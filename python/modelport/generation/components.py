"""A generative model as files that run together: which parts, captured how, under which names."""

from __future__ import annotations

import copy
import dataclasses
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from transformers.cache_utils import Cache

from ..errors import ExportError, problem
from ..structure import flatten, unflatten
from .continuing import PAST, Example, continuing, without_flags
from .encoder_decoder import PAST_ENCODED, Decoder, decoder_example, decoder_inputs, encoder_example
from .prompts import generous
from .watching import Call, watch_generate

_STEPS = 4  # one for the prompt, three to be put side by side


@dataclasses.dataclass
class Part:
    """A module with an example call; `dynamic_shapes` None lets every axis be dynamic."""

    module: torch.nn.Module
    inputs: dict[str, Any]
    dynamic_shapes: Any = None
    # Whether the captured program also serves another call, which it must.
    also: Callable[[Any], bool] | None = None
    gives_logits: bool = False


Export = Callable[[str, Part], Any]


class Components(dict[str, Any]):
    """Exported programs by the name of their file; `save` writes the folder that clients open."""

    def __init__(self, programs: Mapping[str, Any], model: Any):
        super().__init__(programs)
        self.model = model

    def save(self, folder: str | os.PathLike[str], **changes: Any) -> Path:
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        for name, program in self.items():
            program.save(folder / f"{name}.onnx", **changes)
        config = copy.deepcopy(self.model.config)
        config.architectures = [type(self.model).__name__]
        config.save_pretrained(folder)
        if getattr(self.model, "generation_config", None) is not None:
            self.model.generation_config.save_pretrained(folder)
        return folder


def components_for_generation(
    model: Any, inputs: Mapping[str, Any], export: Export, generation_config: Any = None
) -> Components:
    """Watches `model.generate(**inputs)` and exports the parts that it takes to do the same."""
    from .multimodal import multimodal_components  # which makes parts as this module has them

    inputs = generous(model, inputs)
    if getattr(model.config, "is_encoder_decoder", False):
        return Components(_encoder_decoder(model, inputs, export, generation_config), model)
    parts = multimodal_components(model, inputs, export, generation_config)
    return Components(parts or _decoder(model, inputs, export, generation_config), model)


def _decoder(model: Any, inputs: Mapping[str, Any], export: Export, generation_config: Any) -> dict[str, Any]:
    calls = watch_generate(model, inputs, {"model": model}, _STEPS, generation_config)["model"]
    if not _has_a_past(calls[1]):  # the model reads everything again for each token
        plain = {n: v for n, v in without_flags(calls[0]).items() if isinstance(v, torch.Tensor)}
        return {"model": export("model", Part(model, plain, gives_logits=True))}
    example = continuing(calls)
    served = [(call, _as_in(example, without_flags(call))) for call in calls[:2]]
    part = Part(model, example.inputs, example.dynamic_shapes(), _serves(model, served), gives_logits=True)
    try:
        return {"model": export("model", part)}
    except ExportError as error:
        first, step = without_flags(calls[0]), without_flags(calls[1])
        return _in_two(export, error, Part(model, _without_empty_caches(first)), Part(model, step))


def _encoder_decoder(model: Any, inputs: Mapping[str, Any], export: Export, generation_config: Any) -> dict[str, Any]:
    modules = {"encoder": model.get_encoder(), "model": model}
    seen = watch_generate(model, inputs, modules, _STEPS, generation_config)
    calls = seen["model"]
    if not calls:
        raise problem(
            "E0301",
            f"generate of {type(model).__name__} hands over to an encoder-decoder inside it",
            "OnnxExporter().export(part, inputs) exports its parts one by one",
        )
    decoder = Decoder(model, type(calls[0]["encoder_outputs"])).eval()
    example = decoder_example(calls)
    served = [(call, _as_in(example, decoder_inputs(call))) for call in calls[:2]]
    part = Part(decoder, example.inputs, example.dynamic_shapes(), _serves(model, served), gives_logits=True)
    return {
        "encoder_model": export("encoder_model", Part(modules["encoder"], encoder_example(seen["encoder"]))),
        "decoder_model_merged": export("decoder_model_merged", part),
    }


def _in_two(export: Export, error: ExportError, prompt: Part, step: Part) -> dict[str, Any]:
    """The prompt and the later tokens by graphs of their own; the error of the one graph, if that fails too."""
    parts = {"decoder_model": prompt, "decoder_with_past_model": step}
    try:
        return {name: export(name, dataclasses.replace(part, gives_logits=True)) for name, part in parts.items()}
    except ExportError:
        raise error from None


def _has_a_past(step: Call) -> bool:
    return any(flatten({n: v}).tensors() for n, v in step.items() if isinstance(v, Cache))


def _without_empty_caches(call: Call) -> Call:
    return {n: v for n, v in call.items() if not isinstance(v, Cache) or flatten({n: v}).tensors()}


def _as_in(example: Example, inputs: Call) -> Call:
    """The inputs of a call in the form of the example: a cache that has nothing yet has tensors all the same."""
    given = {name: value for name, value in inputs.items() if name in example.inputs}
    for name, value in example.inputs.items():
        if isinstance(value, Cache) and (name not in given or not flatten({name: given[name]}).tensors()):
            given[name] = _emptied(name, value, example.axes)
    return given


def _serves(model: Any, calls: list[tuple[Call, Call]]) -> Callable[[Any], bool]:
    """Whether a captured program gives the logits of the model for calls that `generate` made. Each comes twice: as it
    was made, and as the program takes it."""

    def serves(captured: Any) -> bool:
        return all(_same_logits(model, captured, made, taken) for made, taken in calls)

    return serves


@torch.no_grad()
def _same_logits(model: Any, captured: Any, made: Call, taken: Call) -> bool:
    want = model(**copy.deepcopy(made)).logits
    try:
        result = captured.run(**copy.deepcopy(taken))
    except ExportError:  # sizes that it was not captured for
        return False
    got = (result["logits"] if isinstance(result, dict) else result.logits)[:, -want.shape[1] :]
    return got.shape == want.shape and bool(torch.allclose(got, want, atol=1e-3, rtol=1e-3, equal_nan=True))


def _emptied(name: str, cache: Cache, axes: Mapping[str, Mapping[int, str]]) -> Cache:
    """The cache before the first token: no past, and states that are zero."""
    flat = flatten({name: copy.deepcopy(cache)})
    leaves = []
    for leaf, value in zip(flat.names, flat.leaves, strict=True):
        if isinstance(value, torch.Tensor):
            grown = [axis for axis, role in axes.get(leaf, {}).items() if role in (PAST, PAST_ENCODED)]
            value = value.narrow(grown[0], 0, 0) if grown else torch.zeros_like(value)
        leaves.append(value)
    return unflatten(leaves, flat.spec)[name]
