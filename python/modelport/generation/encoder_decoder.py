"""Encoder-decoders in two parts: the encoder, and a decoder that takes its states.

The decoder projects the encoder's states once, at its first step, and keeps the result in the cache. For one graph that
serves all steps, the cache of the cross-attention may be empty or whole: the graph projects only the states that the
cache does not have yet, which are all of them or none, and appends the result. Where the model's code does not take
that, the first step and the later ones are graphs of their own."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from transformers.cache_utils import EncoderDecoderCache
from transformers.modeling_outputs import BaseModelOutput

from ..base.structure import flatten
from .caches import parts_of
from .continuing import BATCH, PAST, Example, continuing, without_flags
from .watching import Call

ENCODED, PAST_ENCODED = "encoder_sequence_length", "past_encoder_sequence_length"
READ = "encoder_input_length"
_STATES = ("key_value_states", "encoder_hidden_states")  # what layers call the encoder's states
_READ_BY_THE_ENCODER = ("input_ids", "input_features", "pixel_values", "input_values", "inputs_embeds")


class Decoder(torch.nn.Module):
    """The decoder with its head, as a model of its own."""

    def __init__(self, model: Any, encoded: type[Any] = BaseModelOutput):
        """`encoded` is what the model's encoder gives."""
        super().__init__()
        self.model = model
        self.config = model.config
        self.encoded = encoded
        self.projecting = tuple(module for module in model.modules() if _projects_states(module))

    def forward(
        self,
        input_ids: torch.Tensor,
        encoder_hidden_states: torch.Tensor,
        encoder_attention_mask: torch.Tensor | None = None,
        past_key_values: EncoderDecoderCache | None = None,
        **more: Any,
    ) -> dict[str, Any]:
        return self._outputs(past_key_values, input_ids, encoder_hidden_states, encoder_attention_mask, more)

    def _outputs(self, past: EncoderDecoderCache | None, *given: Any) -> dict[str, Any]:
        known = 0
        if past is not None:
            known = past.cross_attention_cache.layers[0].keys.shape[-2]
            past.is_updated = dict.fromkeys(range(len(past.cross_attention_cache)), False)
        with _rest_of_states(self.projecting, known):
            result = self._step(past, *given)
        return {"logits": result.logits, "past_key_values": result.past_key_values}

    def _step(self, past: Any, ids: torch.Tensor, states: torch.Tensor, mask: Any, more: dict[str, Any]) -> Any:
        encoded = self.encoded(last_hidden_state=states)
        if hasattr(encoded, "attention_mask"):  # an encoder that gives fewer states than it takes, and says which
            encoded.attention_mask, mask = mask, None
        return self.model(
            decoder_input_ids=ids,
            encoder_outputs=encoded,
            attention_mask=mask,
            past_key_values=past,
            use_cache=True,
            return_dict=True,
            **more,
        )


class OneStep(Decoder):
    """One call as the model makes it: the first, without a past; or a later one, whose cross-attention is complete and
    is not given again."""

    def _outputs(self, past: EncoderDecoderCache | None, *given: Any) -> dict[str, Any]:
        result = self._step(past, *given)
        cache = result.past_key_values
        return {
            "logits": result.logits,
            "past_key_values": cache if past is None else {"self_attention_cache": parts_of(cache)[0]},
        }


@contextmanager
def _rest_of_states(projecting: tuple[torch.nn.Module, ...], known: Any) -> Iterator[None]:
    """Layers that project the encoder's states see those from `known` on."""
    cut: dict[int, torch.Tensor] = {}  # by identity; the tensors are kept, so that no number is used twice

    def rest(states: torch.Tensor) -> torch.Tensor:
        if any(states is piece for piece in cut.values()):
            return states
        if id(states) not in cut:
            cut[id(states)] = states[:, known:].contiguous()  # as the encoder gives them: some models take views
        return cut[id(states)]

    def hook(module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        names = list(inspect.signature(module.forward).parameters)[: len(args)]
        args = tuple(rest(v) if n in _STATES and v is not None else v for n, v in zip(names, args, strict=True))
        changed = {n: rest(v) if n in _STATES and v is not None else v for n, v in kwargs.items()}
        return args, changed

    handles = [module.register_forward_pre_hook(hook, with_kwargs=True) for module in projecting]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _projects_states(module: torch.nn.Module) -> bool:
    """An attention: it takes states of the encoder and has weights of its own for them."""
    takes = any(name in _STATES for name in inspect.signature(module.forward).parameters)
    return takes and any(child.__class__.__name__ in ("Linear", "Conv1D") for child in module.children())


def encoder_example(calls: list[Call]) -> dict[str, Any]:
    return {name: value for name, value in without_flags(calls[0]).items() if isinstance(value, torch.Tensor)}


def decoder_inputs(call: Call) -> dict[str, Any]:
    """A call of the whole model as a call of its decoder: the encoder has read its own inputs by then."""
    given = without_flags(call)
    encoded = given.pop("encoder_outputs")
    mask = given.pop("attention_mask", None)
    if getattr(encoded, "attention_mask", None) is not None:
        mask = encoded.attention_mask
    inputs = {"input_ids": given.pop("decoder_input_ids"), "encoder_hidden_states": encoded[0]}
    if mask is not None:
        inputs["encoder_attention_mask"] = mask
    return inputs | {name: value for name, value in given.items() if name not in _READ_BY_THE_ENCODER}


def decoder_example(calls: list[Call]) -> Example:
    """The decoder's inputs under the names of its own file, with a cross-attention that is half known."""
    whole = continuing(calls)
    inputs = decoder_inputs(whole.inputs)
    inputs["past_key_values"] = copy.deepcopy(inputs["past_key_values"])
    _half_known(inputs["past_key_values"], inputs["encoder_hidden_states"].shape[1])
    return DecoderExample(inputs, _axes(inputs, whole, PAST_ENCODED))


def step_examples(calls: list[Call]) -> tuple[Example, ...]:
    """The first call, and one for a token after it. The tokens of the first are as many as `generate` starts with."""
    whole = continuing(calls)
    first, step = decoder_inputs(calls[0]), decoder_inputs(calls[1])
    first = {name: value for name, value in first.items() if isinstance(value, torch.Tensor)}
    return tuple(
        DecoderExample(inputs, _of_axes_longer_than_one(inputs, _axes(inputs, whole, ENCODED)))
        for inputs in (first, step)
    )


def _axes(inputs: Call, whole: Example, of_cross_attention: str) -> dict[str, dict[int, str]]:
    axes = {"input_ids": whole.axes["decoder_input_ids"]}
    axes["encoder_hidden_states"] = {0: BATCH, 1: ENCODED}
    if "encoder_attention_mask" in inputs:  # of what the encoder reads, which may be longer than what it gives
        same = inputs["encoder_attention_mask"].shape[1] == inputs["encoder_hidden_states"].shape[1]
        axes["encoder_attention_mask"] = {0: BATCH, 1: ENCODED if same else READ}
    axes |= {name: of for name, of in whole.axes.items() if name in inputs and name not in axes}
    for name in flatten({"past_key_values": inputs.get("past_key_values")}).tensors():
        crossed = ".cross_attention_cache." in name
        axes[name] = {0: BATCH, 2: of_cross_attention} if crossed else whole.axes[name]
    return axes


def _of_axes_longer_than_one(inputs: Call, axes: dict[str, dict[int, str]]) -> dict[str, dict[int, str]]:
    """A call for one token is none for several."""
    tensors = flatten(inputs).tensors()
    return {
        n: {a: role for a, role in of.items() if role in (PAST, BATCH) or tensors[n].shape[a] > 1}
        for n, of in axes.items()
    }


class DecoderExample(Example):
    def dynamic_shapes(self) -> dict[str, dict[int, Any]]:
        empty = {role: torch.export.Dim(role, min=0) for role in (PAST, PAST_ENCODED)}
        return {n: {a: empty.get(role, role) for a, role in axes.items()} for n, axes in self.axes.items()}


def _half_known(cache: EncoderDecoderCache, length: int) -> None:
    known = max(length // 2, 1)
    for layer in cache.cross_attention_cache.layers:
        layer.keys = copy.copy(layer.keys[:, :, :known])
        layer.values = copy.copy(layer.values[:, :, :known])
