"""A decoder over the files of a checkpoint, exported without the values of its weights.

`generate` runs, and the model in it gives zeros of the right shapes. Whether one graph serves the prompt and all tokens
after it is then not seen from values, but from graphs: those of the prompt and of a token must be the same. A cache of
keys and values alone has nothing but its length to tell the model whether there is a past; where it has more, or the
graphs differ, the weights are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from transformers.cache_utils import Cache

from ..base.structure import flatten
from ..capturing.attempts import capture_once
from ..capturing.captured import Captured
from ..capturing.dynamic import axes_for
from ..capturing.guards import tested
from ..capturing.recording import Trial
from ..lazy.checkpoint_weights import CheckpointWeights, NeedsValues
from ..models.state import no_garbage_collection, remembered
from ..weights import lazy_weights
from .caches import masks_know_the_past, only_grows
from .continuing import CALLS, Example, continuing, without_flags
from .finding import sees_or_hears
from .part import Export, Part
from .serving import has_a_past, in_form_of, tried
from .states import attributes_watched
from .watching import Call, watch_generate


def lazy_decoder(
    model: Any, inputs: Mapping[str, Any], export: Export, generation_config: Any = None
) -> dict[str, Any] | None:
    """None for a model in memory, and for one that needs its values, which it then has."""
    weights = lazy_weights.of(model)
    if not isinstance(weights, CheckpointWeights):
        return None
    if getattr(model.config, "is_encoder_decoder", False) or sees_or_hears(model):
        weights.fill()
        return None
    try:
        with weights.only_shapes(), attributes_watched(model) as kept:
            calls = watch_generate(model, inputs, {"model": model}, CALLS, generation_config)["model"]
        if not kept[1].keys() <= kept[0].keys() or not masks_know_the_past(calls[1]):
            raise NeedsValues("the model keeps tensors where no cache has them, which may be states")
        part = _part(model, calls)
        with weights.unread():
            program = export("model", part)
        if weights.refused:
            raise NeedsValues("only values can decide a condition that the model asks of a size")
    except Exception as error:  # whatever it is, an export with values either works or reports it
        weights.read_because(error)
    return None if weights.read else {"model": program}


def _part(model: Any, calls: list[Call]) -> Part:
    if not has_a_past(calls[1]):
        plain = {n: v for n, v in without_flags(calls[0]).items() if isinstance(v, torch.Tensor)}
        return Part(model, plain, gives_logits=True)
    example = continuing(calls)
    caches = [value for value in example.inputs.values() if isinstance(value, Cache)]
    if not all(map(only_grows, caches)):
        raise NeedsValues("the cache has more in it than keys and values, which may make the prompt a case of its own")
    served = [without_flags(call) for call in tried(calls)]
    if any(call.keys() != example.inputs.keys() for call in served):
        raise NeedsValues("generate gives the model other inputs for the prompt than for the tokens after it")
    served = [in_form_of(example, call) for call in served]
    return Part(
        model, example.inputs, example.dynamic_shapes(), gives_logits=True, trials=_trials(model, example, served)
    )


def _trials(model: Any, example: Example, calls: list[Call]) -> Callable[[Captured, Mapping[str, Any]], None]:
    """Captures the model again at the prompt and at the first token after it: the graph must be the same. What is tried
    so are sizes that the graph is for; what else the model asked of sizes is tried as always."""
    axes = axes_for(flatten(example.inputs), dynamic=True, dynamic_shapes=example.dynamic_shapes())

    def trials(captured: Captured, inputs: Mapping[str, Any]) -> None:
        with no_garbage_collection(), remembered(model):
            for call in calls[:2]:
                other = capture_once(model, flatten(dict(inputs) | call), axes, trial=Trial.COMPARED)
                if not captured.program.same_as(other.program):
                    raise NeedsValues("the model does not do the same for the prompt as for the tokens after it")
                _widen(captured.program, other.program, _sizes(example, call))
            tested(model, captured, axes)
        if not all(_admits(captured.program, _sizes(example, call), call) for call in calls):
            raise NeedsValues("not every size of a prompt is one that the graph is for")

    return trials


def _sizes(example: Example, call: Call) -> dict[str, int]:
    given = flatten(call).tensors()
    return {role: given[name].shape[axis] for name, axes in example.axes.items() for axis, role in axes.items()}


def _widen(program: Any, other: Any, sizes: Mapping[str, int]) -> None:
    below = [dim["name"] for dim in program.dims() if dim["lo"] > dim["declared_lo"]]
    program.widen(other, [name for name in below if name in sizes], program)


def _admits(program: Any, sizes: Mapping[str, int], call: Call) -> bool:
    given = flatten(call).tensors()
    for dim in program.dims():
        size = sizes.get(dim["name"])
        if size is None or size < dim["lo"] or (dim["hi"] is not None and size > dim["hi"]):
            return False
    shapes = zip(program.inputs(), program.input_sizes(dict(sizes)), strict=True)
    if any(list(given[name].shape) != shape for (name, _, _), shape in shapes):
        return False
    return program.admits(dict(sizes))
