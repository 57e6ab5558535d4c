"""Models that generate as one ExecuTorch program: decoders that keep their cache, the encoders and embeddings that they
need, and numbers about the model that ExecuTorch's own runners read."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from transformers.cache_utils import EncoderDecoderCache

from ..base.dtypes import float_dtype
from ..base.errors import ExportError, problem
from ..capturing.arguments import refuse_training
from ..capturing.captured import Captured
from ..generation.custom_attention import CacheSettings, takes_custom
from ..generation.cutting import Cut
from ..generation.encoder_decoder import encoder_example
from ..generation.finding import find_cut, sees_or_hears
from ..generation.roles import Roles
from ..generation.static_decoder import (
    PAST,
    StaticCrossDecoder,
    StaticDecoder,
    StaticEmbeddingDecoder,
    filled_cache,
    ids_for,
)
from ..generation.static_parts import EncoderStates, embeddings_in_a_row, media_parts
from ..generation.static_serving import Step, captured_states, serves, steps_of_calls, steps_of_text
from ..generation.watching import refuse_if_it_cannot_generate, watch_generate
from ..generation.whole_decoder import PreparedDecoder, WholeCrossDecoder, WholeDecoder
from ..lazy.checkpoint_weights import CheckpointWeights
from ..lazy.folder import open_model
from ..models.locks import only_user
from ..weights import lazy_weights
from ..weights.checkpoint import written_dtype
from .configs import ExecutorchConfig
from .executorch import ExecutorchProgram
from .executorch_bounds import longest_sequence
from .executorch_components import ExecutorchComponents, captured_part
from .executorch_constants import constant_methods, of_media
from .patches import apply_patches

Programs = tuple[dict[str, ExecutorchProgram], list[str]]
_READ = ("input_ids", "input_features", "input_values", "pixel_values")
_TEXT = {"input_ids": {1: "seq"}, "cache_position": {0: "seq"}}


def export_for_generation(model: Any, inputs: Mapping[str, Any], config: ExecutorchConfig) -> ExecutorchComponents:
    """`inputs` are those of `generate`: what an encoder reads. A decoder of text needs none."""
    if config.compiled_by_others:
        what = f"models that generate are written for portable and xnnpack, not for {config.backend}"
        raise problem("E0203", what, 'recipe="xnnpack", or --recipe xnnpack')
    config = config.for_type(own_dtype(model))
    if isinstance(model, str | os.PathLike):
        model = open_model(model, dtype=float_dtype(config.dtype))
    refuse_if_it_cannot_generate(model)
    refuse_training(model)
    length = longest_sequence(config.max_seq_len, model.config)
    settings = CacheSettings(length, config.use_custom_sdpa, config.use_custom_kv_cache)
    one = _of_one_text(inputs)
    with only_user(model), apply_patches("executorch"):
        if getattr(model.config, "is_encoder_decoder", False):
            programs, notes = _encoder_decoder(model, one, settings, config)
        elif any(_is_media(value) for value in one.values()):
            programs, notes = _multimodal(model, one, settings, config)
        else:
            programs, notes = _decoder(model, settings, config.without_encoder())
    decoder = programs.get("forward") or programs["text_decoder"]
    constants = constant_methods(model, decoder, settings, cached="cache_position" in decoder.input_names)
    components = ExecutorchComponents(programs, model, constants | of_media(model, programs), notes)
    if config.output_path is not None:
        components.save(config.output_path)
    return components


def own_dtype(model: Any) -> Any:
    """The type that a model, or the one in a folder, has or would be loaded in; None where nobody says."""
    if not isinstance(model, str | os.PathLike):
        return getattr(model, "dtype", None)
    return written_dtype(Path(model))


def _of_one_text(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The last row, without masks: what has another number of rows belongs to all."""
    sizes = [len(inputs[name]) for name in _READ if isinstance(inputs.get(name), torch.Tensor)]
    rows = sizes[0] if sizes else 1
    return {
        name: value[-1:] if isinstance(value, torch.Tensor) and value.dim() and len(value) == rows > 1 else value
        for name, value in inputs.items()
        if "mask" not in name
    }


def _is_media(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def _decoder(model: Any, settings: CacheSettings, config: ExecutorchConfig) -> Programs:
    """`forward(input_ids, cache_position)`"""
    cache = filled_cache(model, {"input_ids": ids_for(model, 2)})
    steps = steps_of_text(model) if _has_exact_values(model, config) else []
    decoder = _Decoder(model, settings, _TEXT, config, steps)
    wholes = [WholeDecoder(model), PreparedDecoder(model)]
    make = None if cache is None else functools.partial(StaticDecoder, model, cache=cache)
    program, notes = decoder.cached_or_whole(make, wholes)
    return {"forward": program}, notes


def _encoder_decoder(
    model: Any, inputs: Mapping[str, Any], settings: CacheSettings, config: ExecutorchConfig
) -> Programs:
    """`encoder(what it reads)` and `text_decoder(input_ids, encoder_hidden_states, cache_position)`"""
    _read_weights(model)
    seen = watch_generate(model, inputs, {"encoder": model.get_encoder(), "model": model}, 2)
    cache = next((call.get("past_key_values") for call in seen["model"][1:]), None)
    read = {name: value for name, value in encoder_example(seen["encoder"]).items() if "mask" not in name}
    axes: dict[str, Any] = {name: {} if _is_media(value) else {1: "encoder_seq"} for name, value in read.items()}
    encoder = EncoderStates(model.get_encoder()).eval()
    captured = captured_part(model, encoder, read, axes, config)
    encoded = seen["model"][0]["encoder_outputs"]
    whole = WholeCrossDecoder(model, type(encoded), encoded[0])
    keeps = isinstance(cache, EncoderDecoderCache)
    shapes = _TEXT | {"encoder_hidden_states": {1: "encoder_seq"} if any(axes.values()) else {}}
    steps = []
    if _has_exact_values(model, config):
        calls = seen["model"] if keeps else seen["model"][:1]  # else the next call has the whole text again
        given = [{"input_ids": call["decoder_input_ids"]} | captured_states(captured, read) for call in calls]
        steps = steps_of_calls(model, calls, given)
    decoder = _Decoder(model, settings, shapes, config, steps)
    of_encoder = {"encoded": type(encoded), "states": encoded[0]}
    make = functools.partial(StaticCrossDecoder, model, cache=cache, **of_encoder) if keeps else None
    program, notes = decoder.cached_or_whole(make, [whole])
    program_of_encoder = ExecutorchProgram(captured, config.for_encoder(), model.config)
    return {"encoder": program_of_encoder, "text_decoder": program}, notes


def _multimodal(model: Any, inputs: Mapping[str, Any], settings: CacheSettings, config: ExecutorchConfig) -> Programs:
    """`vision_encoder` or `audio_encoder`, `token_embedding` of words, `text_decoder(inputs_embeds, cache_position)`"""
    _read_weights(model)
    with torch.no_grad():
        cut = find_cut(model, inputs) if sees_or_hears(model) else None
        roles = None if cut is None else embeddings_in_a_row(cut)
    if cut is None or roles is None:
        what = f"{type(model).__name__} hands more from its encoders to its decoder than embeddings in a row"
        raise problem("E0205", what, "export to onnx: modelport export onnx MODEL OUT")
    programs = {}
    for name, part in media_parts(cut, roles).items():
        axes = {"input_ids": {1: "seq"}} if name == "token_embedding" else None
        captured = captured_part(model, part.module, part.inputs, axes, config)
        programs[name] = ExecutorchProgram(captured, config if axes else config.for_encoder())
    program, notes = _after_embedding(model, cut, roles, settings, config)
    return programs | {"text_decoder": program}, notes


def _after_embedding(
    model: Any, cut: Cut, roles: Roles, settings: CacheSettings, config: ExecutorchConfig
) -> tuple[ExecutorchProgram, list[str]]:
    """With what runners of ExecuTorch give it or, where that is not enough, with other values a token."""
    stepping, call = cut.stepping, cut.calls[0]
    cache = filled_cache(stepping, {"input_ids": ids_for(stepping, 2)})
    if cache is None:
        what = f"{type(model).__name__} has no cache that a program could keep"
        raise problem("E0205", what, "export to onnx: modelport export onnx MODEL OUT")
    with torch.no_grad():
        embeds = cut.reached(cut.call, cut.as_it_was())["inputs_embeds"]
    of_tokens = {n: call[n] for n in roles.text_of_decoder if n in call and call[n].shape[-1] == embeds.shape[1]}
    refused = None
    for further in ({}, of_tokens):
        given = {"inputs_embeds": embeds, **further}
        steps = steps_of_calls(stepping, [call], [given]) if _has_exact_values(model, config) else []
        axes = {name: {value.dim() - 1: "seq"} for name, value in further.items()}
        axes |= {"inputs_embeds": {1: "seq"}, "cache_position": {0: "seq"}}
        try:
            make = functools.partial(StaticEmbeddingDecoder, stepping, cache=cache, further=further)
            program, notes = _Decoder(model, settings, axes, config, steps).cached_or_whole(make, [])
        except ExportError as error:
            if error.code != "E0205":
                raise
            refused = refused or error
            continue
        taken = ", ".join(further)
        more = [f"text_decoder takes {taken} besides, which ExecuTorch's own runners do not give"] if further else []
        return program, notes + more
    assert refused is not None
    raise refused


def _has_exact_values(model: Any, config: ExecutorchConfig) -> bool:
    """Whether values can be compared before anything is written: they are in memory, and of a type that is exact."""
    weights = lazy_weights.of(model)
    unread = isinstance(weights, CheckpointWeights) and not model.config.is_encoder_decoder and not sees_or_hears(model)
    return not unread and model.dtype == torch.float32 and float_dtype(config.dtype) in (None, torch.float32)


def _gives_other_values(model: Any) -> Exception:
    what = f"a program that reads token after token gives other values than {type(model).__name__} does in generate"
    return problem("E0205", what, "export to onnx: modelport export onnx MODEL OUT")


def _reason(error: ExportError) -> str:
    return str(error.diagnostics[0]["what"]) if error.diagnostics else str(error).splitlines()[0]


def _read_weights(model: Any) -> None:
    """What is found out by watching `generate` needs values."""
    weights = lazy_weights.of(model)
    if isinstance(weights, CheckpointWeights):
        weights.fill()


@dataclasses.dataclass
class _Decoder:
    """A decoder that is to become a program: which of its axes change, and `steps` that are tried out."""

    model: Any
    settings: CacheSettings
    axes: Mapping[str, Any]
    config: ExecutorchConfig
    steps: list[Step]

    def cached_or_whole(
        self, make: Callable[[CacheSettings], Any] | None, wholes: list[Any]
    ) -> tuple[ExecutorchProgram, list[str]]:
        """With a cache, over which `make` makes a decoder. Where that cannot be: the first of `wholes`, which read the
        whole text for each token, that does as the model does."""
        why = "it has no cache of transformers' own"
        of_past = dataclasses.replace(self.settings, custom_sdpa=False, custom_cache=False, past_alone=True)
        for settings in (self.settings, of_past):
            if make is None:
                break
            try:
                return self._cached(make(settings).eval())
            except ExportError as error:
                if error.code != "E0205":
                    raise
                why = why if settings.past_alone else _reason(error)
        name = type(self.model).__name__
        note = f"{name} reads the whole text for each token, because a program cannot keep its cache: {why}"
        axes = {name: of for name, of in self.axes.items() if name != "cache_position"}
        for whole in wholes:
            captured = captured_part(self.model, whole.eval(), whole.example(), axes, self.config)
            if serves(captured, self.steps):
                return ExecutorchProgram(captured, self.config, self.model.config), [note]
        raise _gives_other_values(self.model)

    def _cached(self, decoder: Any) -> tuple[ExecutorchProgram, list[str]]:
        """For several tokens, or where that cannot be for one."""
        model, config, settings, notes = self.model, self.config, decoder.settings, []
        by_kernel = settings.custom_sdpa and (takes_custom(decoder.model) or decoder.rules)
        if self.settings.custom_sdpa and not by_kernel:
            what = "has an attention of its own: use_custom_sdpa makes no difference to it"
            notes.append(f"{type(model).__name__} {what}")
        if settings.past_alone:
            config = dataclasses.replace(config, dims={**(config.dims or {}), PAST: (0, settings.length)})
        if not config.disable_dynamic_shapes and settings.length > 1:
            captured, why = _of_several_tokens(model, decoder, self.axes, config)
            if captured is not None and serves(captured, self.steps):
                return ExecutorchProgram(captured, config, model.config), notes
            notes.append(f"tokens are read one by one, those of a prompt too: {why}")
        fixed = {name: {a: axis for a, axis in axes.items() if axis != "seq"} for name, axes in self.axes.items()}
        captured = captured_part(model, decoder, decoder.example(tokens=1), fixed, config)
        if not serves(captured, self.steps):
            raise _gives_other_values(model)
        dims = {PAST: (0, settings.length)} if settings.past_alone else None
        return ExecutorchProgram(captured, dataclasses.replace(config, dims=dims), model.config), notes


def _of_several_tokens(
    model: Any, decoder: Any, shapes: Mapping[str, Any], config: ExecutorchConfig
) -> tuple[Captured | None, str]:
    """And why there is none, or why it may not serve."""
    if decoder.rules and not config.use_custom_sdpa:  # each token of an answer would cost as much as a chunk
        return (
            None,
            "its linear attention computes whole chunks; use_custom_sdpa takes a kernel for any number of tokens",
        )
    try:
        captured = captured_part(model, decoder, decoder.example(), shapes, config)
    except ExportError as error:
        return None, _reason(error)
    return captured if _takes_one_token(
        captured
    ) else None, "the model does something else for one token than for several"


def _takes_one_token(captured: Captured) -> bool:
    return all(row["lo"] <= 1 for row in captured.lazy_program.dims() if row["name"] == "seq")
