"""A generative model as files that run together: which parts, captured how, under which names."""

from __future__ import annotations

import copy
import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from transformers.cache_utils import Cache

from ..artifacts.staging import Staging
from ..artifacts.variants import named
from ..base.errors import ExportError, problem
from ..base.structure import flatten
from ..capturing.arguments import refuse_training
from ..models.locks import only_user
from .caches import masks_know_the_past
from .continuing import CALLS, axes_of_step, continuing, without_flags
from .encoder_decoder import (
    Decoder,
    OneStep,
    decoder_example,
    decoder_inputs,
    encoder_example,
    step_examples,
)
from .lazy_decoder import lazy_decoder
from .multimodal import multimodal_components
from .part import Export, Part
from .prompts import generous
from .serving import has_a_past, in_form_of, serves_calls, tried
from .states import Stateful, attributes_watched, find_states
from .watching import Call, watch_generate


class Components(dict[str, Any]):
    """Exported programs by the name of their file; `save` writes the folder that clients open."""

    def __init__(self, programs: Mapping[str, Any], model: Any, example: Mapping[str, Any]):
        """`example` are the inputs of `generate` that they were made from."""
        super().__init__(programs)
        self.model = model
        for program in programs.values():
            program.example_names = sorted(name for name, value in example.items() if hasattr(value, "shape"))

    def lowered_again(self, **changes: Any) -> Components:
        """The same captures, written otherwise: `changes` are fields of the config of each program."""
        again = copy.copy(self)
        again.update({name: program.lowered_again(**changes) for name, program in self.items()})
        return again

    def save(self, folder: str | os.PathLike[str], **changes: Any) -> Path:
        """Parts of another model that are there go; what was there stays whole if this fails."""
        with Staging(folder, is_file=False) as staging:
            self.write(staging.folder, **changes)
            staging.commit()
        return Path(folder)

    def write(self, folder: Path, suffix: str = "", **changes: Any) -> None:
        """As `save`, into a folder that is nobody's yet. Names of files end in `suffix`, where the folder gets the
        model in several types; its configuration is that of the first."""
        for name, program in self.items():
            program.write(folder / named(name, suffix), **changes)
        self.write_settings(folder)

    def write_settings(self, folder: Path) -> None:
        """The configuration beside the parts, unless it is there."""
        if (folder / "config.json").exists():
            return
        config = copy.deepcopy(self.model.config)
        config.architectures = [type(self.model).__name__]
        config.save_pretrained(folder)
        if getattr(self.model, "generation_config", None) is not None:
            self.model.generation_config.save_pretrained(folder)


def components_for_generation(
    model: Any, inputs: Mapping[str, Any], export: Export, generation_config: Any = None
) -> Components:
    """Watches `model.generate(**inputs)` and exports the parts that it takes to do the same."""
    refuse_training(model)
    with only_user(model):
        return _components(model, generous(model, inputs), export, generation_config)


def _components(model: Any, inputs: Mapping[str, Any], export: Export, generation_config: Any) -> Components:

    lazy = lazy_decoder(model, inputs, export, generation_config)
    if lazy is not None:
        return Components(lazy, model, inputs)
    if getattr(model.config, "is_encoder_decoder", False):
        return Components(_encoder_decoder(model, inputs, export, generation_config), model, inputs)
    parts = multimodal_components(model, inputs, export, generation_config)
    return Components(parts or _decoder(model, inputs, export, generation_config), model, inputs)


def _decoder(model: Any, inputs: Mapping[str, Any], export: Export, generation_config: Any) -> dict[str, Any]:
    calls, kept = _watched(model, inputs, generation_config, whole_past=True)
    if not masks_know_the_past(calls[1]):
        before = kept[0]
        calls, kept = _watched(model, inputs, generation_config, whole_past=False)
        kept[0] = before
    states = find_states(model, calls, kept)
    if states is not None:
        calls = [states.flat(call, held) for call, held in zip(calls, [{}, *kept[1:]], strict=True)]
        model = Stateful(model, states).eval()
    if not has_a_past(calls[1]):  # the model reads everything again for each token
        plain = [{n: v for n, v in without_flags(call).items() if isinstance(v, torch.Tensor)} for call in calls]
        served = serves_calls(model, [(calls[0], plain[0]), (calls[-1], plain[-1])])
        return {"model": export("model", Part(model, plain[0], serves=served, gives_logits=True))}
    example = continuing(calls)
    served = serves_calls(model, [(call, in_form_of(example, without_flags(call))) for call in tried(calls)])
    part = Part(model, example.inputs, example.dynamic_shapes(), served, gives_logits=True)
    try:
        return {"model": export("model", part)}
    except ExportError as error:
        first, *steps = [without_flags(call) for call in calls]
        prompt = _without_empty_caches(first)
        return _in_two(
            export,
            error,
            Part(model, prompt, serves=serves_calls(model, [(calls[0], prompt)])),
            Part(
                model,
                steps[0],
                axes_of_step(steps[0]),
                serves_calls(model, [(calls[1], steps[0]), (calls[-1], steps[-1])]),
            ),
        )


def _watched(model: Any, inputs: Mapping[str, Any], generation_config: Any, *, whole_past: bool) -> tuple[Any, Any]:
    """The calls, and what the modules of the model held before each."""
    with attributes_watched(model) as kept:
        return watch_generate(model, inputs, {"model": model}, CALLS, generation_config, whole_past)["model"], kept


def _encoder_decoder(model: Any, inputs: Mapping[str, Any], export: Export, generation_config: Any) -> dict[str, Any]:
    modules = {"encoder": model.get_encoder(), "model": model}
    seen = watch_generate(model, inputs, modules, CALLS, generation_config)
    calls = seen["model"]
    if not calls:
        raise problem(
            "E0311",
            f"generate of {type(model).__name__} hands over to an encoder-decoder inside it",
            "OnnxExporter().export(part, inputs) exports its parts one by one",
        )
    decoder = Decoder(model, type(calls[0]["encoder_outputs"])).eval()
    example = decoder_example(calls)
    served = [(call, in_form_of(example, decoder_inputs(call))) for call in tried(calls)]
    part = Part(decoder, example.inputs, example.dynamic_shapes(), serves_calls(model, served), gives_logits=True)
    encoder = {"encoder_model": export("encoder_model", Part(modules["encoder"], encoder_example(seen["encoder"])))}
    try:
        return encoder | {"decoder_model_merged": export("decoder_model_merged", part)}
    except ExportError as error:
        return encoder | _decoder_in_two(model, calls, export, error)


def _decoder_in_two(model: Any, calls: list[Call], export: Export, error: ExportError) -> dict[str, Any]:
    decoder = OneStep(model, type(calls[0]["encoder_outputs"])).eval()
    served = ([calls[0]], [calls[1], calls[-1]])
    prompt, step = (
        Part(
            decoder,
            example.inputs,
            example.dynamic_shapes(),
            serves_calls(model, [(call, in_form_of(example, decoder_inputs(call))) for call in own]),
        )
        for example, own in zip(step_examples(calls), served, strict=True)
    )
    return _in_two(export, error, prompt, step)


def _in_two(export: Export, error: ExportError, prompt: Part, step: Part) -> dict[str, Any]:
    """The prompt and the later tokens by graphs of their own; the error of the one graph, if that fails too."""
    parts = {"decoder_model": prompt, "decoder_with_past_model": step}
    try:
        return {name: export(name, dataclasses.replace(part, gives_logits=True)) for name, part in parts.items()}
    except ExportError:
        raise error from None


def _without_empty_caches(call: Call) -> Call:
    return {n: v for n, v in call.items() if not isinstance(v, Cache) or flatten({n: v}).tensors()}
