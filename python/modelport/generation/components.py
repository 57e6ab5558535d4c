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
from transformers.generation.utils import ALL_CACHE_NAMES

from ..artifacts.staging import Staging
from ..base.errors import ExportError, problem
from ..base.structure import flatten, unflatten
from ..capturing.capturing import refuse_training
from ..models.locks import only_user
from .caches import masks_know_the_past
from .continuing import CALLS, PAST, STATE, Example, continuing, without_flags
from .encoder_decoder import (
    PAST_ENCODED,
    Decoder,
    OneStep,
    decoder_example,
    decoder_inputs,
    encoder_example,
    step_examples,
)
from .prompts import generous
from .states import Stateful, attributes_watched, find_states
from .watching import Call, watch_generate


@dataclasses.dataclass
class Part:
    """A module with an example call; `dynamic_shapes` None lets every axis be dynamic."""

    module: torch.nn.Module
    inputs: dict[str, Any]
    dynamic_shapes: Any = None
    # Whether the captured program also serves another call, which it must.
    also: Callable[[Any], bool] | None = None
    gives_logits: bool = False
    # Tries the capture at other sizes, in place of what a capture does by itself; is given the inputs, too.
    trials: Callable[[Any, Mapping[str, Any]], None] | None = None


Export = Callable[[str, Part], Any]


class Components(dict[str, Any]):
    """Exported programs by the name of their file; `save` writes the folder that clients open."""

    def __init__(self, programs: Mapping[str, Any], model: Any):
        super().__init__(programs)
        self.model = model

    def save(self, folder: str | os.PathLike[str], **changes: Any) -> Path:
        """Parts of another model that are there go; what was there stays whole if this fails."""
        with Staging(folder, is_file=False) as staging:
            self.write(staging.folder, **changes)
            staging.commit()
        return Path(folder)

    def write(self, folder: Path, **changes: Any) -> None:
        """As `save`, into a folder that is nobody's yet."""
        for name, program in self.items():
            program.write(folder / f"{name}.onnx", **changes)
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
    from .lazy_decoder import unread_decoder
    from .multimodal import multimodal_components  # these make parts as this module has them

    unread = unread_decoder(model, inputs, export, generation_config)
    if unread is not None:
        return Components(unread, model)
    if getattr(model.config, "is_encoder_decoder", False):
        return Components(_encoder_decoder(model, inputs, export, generation_config), model)
    parts = multimodal_components(model, inputs, export, generation_config)
    return Components(parts or _decoder(model, inputs, export, generation_config), model)


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
        served = _serves(model, [(calls[0], plain[0]), (calls[-1], plain[-1])])
        return {"model": export("model", Part(model, plain[0], also=served, gives_logits=True))}
    example = continuing(calls)
    served = _serves(model, [(call, as_in(example, without_flags(call))) for call in tried(calls)])
    part = Part(model, example.inputs, example.dynamic_shapes(), served, gives_logits=True)
    try:
        return {"model": export("model", part)}
    except ExportError as error:
        first, *steps = [without_flags(call) for call in calls]
        prompt = _without_empty_caches(first)
        return _in_two(
            export,
            error,
            Part(model, prompt, also=_serves(model, [(calls[0], prompt)])),
            Part(model, steps[0], also=_serves(model, [(calls[1], steps[0]), (calls[-1], steps[-1])])),
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
            "E0301",
            f"generate of {type(model).__name__} hands over to an encoder-decoder inside it",
            "OnnxExporter().export(part, inputs) exports its parts one by one",
        )
    decoder = Decoder(model, type(calls[0]["encoder_outputs"])).eval()
    example = decoder_example(calls)
    served = [(call, as_in(example, decoder_inputs(call))) for call in tried(calls)]
    part = Part(decoder, example.inputs, example.dynamic_shapes(), _serves(model, served), gives_logits=True)
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
            _serves(model, [(call, as_in(example, decoder_inputs(call))) for call in own]),
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


def tried(calls: list[Call]) -> list[Call]:
    """The prompt, the first token after it, and one that more has grown before."""
    return [calls[0], calls[1], calls[-1]]


def has_a_past(step: Call) -> bool:
    """Whether something is handed from call to call: a cache, or a state by the names that `generate` knows."""
    own = {n: v for n, v in step.items() if n.startswith(STATE) or n in ALL_CACHE_NAMES or isinstance(v, Cache)}
    return bool(flatten(own).tensors())


def _without_empty_caches(call: Call) -> Call:
    return {n: v for n, v in call.items() if not isinstance(v, Cache) or flatten({n: v}).tensors()}


def as_in(example: Example, inputs: Call) -> Call:
    """The inputs of a call in the form of the example: a cache that has nothing yet has tensors all the same."""
    given = {name: value for name, value in inputs.items() if name in example.inputs}
    for name, value in example.inputs.items():
        is_kept = isinstance(value, Cache) or name.startswith(STATE)
        if is_kept and (name not in given or not flatten({name: given[name]}).tensors()):
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
    want = _logits(model(**copy.deepcopy(made)))
    try:
        result = captured.run(**copy.deepcopy(taken))
    except ExportError:  # sizes that it was not captured for
        return False
    got = _logits(result)[:, -want.shape[1] :]
    return got.shape == want.shape and bool(torch.allclose(got, want, atol=1e-3, rtol=1e-3, equal_nan=True))


def _logits(result: Any) -> torch.Tensor:
    return result["logits"] if isinstance(result, dict) else result.logits


def _emptied(name: str, cache: Any, axes: Mapping[str, Mapping[int, str]]) -> Any:
    """The cache, or a tensor of a state, before the first token: no past, and states that are zero."""
    flat = flatten({name: copy.deepcopy(cache)})
    leaves = []
    for leaf, value in zip(flat.names, flat.leaves, strict=True):
        if isinstance(value, torch.Tensor):
            grown = [axis for axis, role in axes.get(leaf, {}).items() if role in (PAST, PAST_ENCODED)]
            value = value.narrow(grown[0], 0, 0) if grown else torch.zeros_like(value)
        leaves.append(value)
    return unflatten(leaves, flat.spec)[name]
