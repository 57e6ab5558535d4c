"""`generate` of a model class on top of exported files: the class is built without weights, its forward runs them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from transformers.cache_utils import Cache
from transformers.generation.utils import ALL_CACHE_NAMES, GenerationMixin

from ..base.errors import problem
from ..models.context_length import context_length
from ..models.locks import building_alone
from ..runtimes.opening import Opening
from . import plain_loop
from .cache_in_place import InPlaceCache
from .features import repeated
from .folder import Folder
from .outputs import fields_of, output_class
from .parts import Parts
from .program_decoder import ProgramDecoder, refuse_no_room
from .torch_threads import one_thread


class OnSessions:
    """What a model class gets in place of its own forward. Everything else, `generate` first of all, stays its own."""

    _parts: Parts
    _output: Any
    _fields: list[str]  # of the output
    _parameters_of_forward: list[str]
    _generates = 0  # calls of `generate` that are under way: what they pass to forward they made themselves

    @property
    def device(self) -> torch.device:
        return torch.device("cpu")

    @property
    def dtype(self) -> torch.dtype:
        return self.config.dtype or torch.float32  # type: ignore[attr-defined]

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        given = dict(zip(self._parameters_of_forward, args, strict=False)) | kwargs
        given = {name: value for name, value in given.items() if value is not None}
        if not self._generates:
            self._parts.taken.refuse_others(given)
        cache_name = next((name for name in ALL_CACHE_NAMES if name in given), None)
        cache = given.pop(cache_name) if cache_name is not None else None
        if isinstance(cache, list | tuple):
            cache = self._taken(cache, given)
        elif cache is None and given.get("use_cache", getattr(self.config, "use_cache", True)):  # type: ignore[attr-defined]
            cache = self.new_cache()
        results = self._parts.run(given, cache)
        output = self._collected(results, given, cache)
        return output if given.get("return_dict", True) else output.to_tuple()

    def _collected(self, results: Mapping[str, Any], given: Mapping[str, Any], cache: Cache | None) -> Any:
        fields = self._fields
        filled = {name: value for name, value in results.items() if name in fields}
        keep = given.get("logits_to_keep")
        if isinstance(keep, int) and keep > 0:
            filled["logits"] = filled["logits"][:, -keep:]
        encoded = given.get("encoder_outputs")
        if "encoder_last_hidden_state" in fields:
            filled["encoder_last_hidden_state"] = encoded[0] if encoded is not None else results["last_hidden_state"]
        place = next((name for name in ALL_CACHE_NAMES if name in fields), None)
        if place is not None and cache is not None:
            filled[place] = cache.tensors() if place == self._parts.decoder.plain_name else cache
        return self._output(**filled)

    def _taken(self, state: Sequence[torch.Tensor], given: Mapping[str, Any]) -> Cache:
        """The state of a model that hands on a list of tensors, which its own code may have changed."""
        cache = self._parts.decoder.new_cache()
        mask, ids = given.get("attention_mask"), given.get("input_ids")
        cache.take(state, 1 if mask is None or ids is None else mask.shape[1] - ids.shape[1])
        return cache

    def _validate_model_kwargs(self, model_kwargs: dict[str, Any]) -> None:
        """`generate` has everything here that it was given besides settings."""
        self._parts.taken.refuse_others(model_kwargs)
        super()._validate_model_kwargs(model_kwargs)  # type: ignore[misc]

    def new_cache(self) -> Cache | None:
        """An empty cache, to be passed as past_key_values from call to call."""
        return self._parts.decoder.new_cache() if self._parts.decoder.has_cache else None

    def _prepare_cache_for_generation(
        self, generation_config: Any, model_kwargs: dict[str, Any], *args: Any, **kwargs: Any
    ) -> Any:
        """The model's own preparation, in which our cache takes the place of the one that it makes."""
        given = {name for name in ALL_CACHE_NAMES if model_kwargs.get(name) is not None}
        if not self._parts.decoder.has_cache:  # the file reads everything again for each token
            generation_config.use_cache = False
        result = super()._prepare_cache_for_generation(  # type: ignore[misc]
            generation_config, model_kwargs, *args, **kwargs
        )
        for name in ALL_CACHE_NAMES:
            if name not in given and isinstance(model_kwargs.get(name), Cache):
                cache = model_kwargs[name] = self.new_cache()
                if isinstance(cache, InPlaceCache):  # what is allocated once is as long as the text can get
                    cache.room = generation_config.max_length
        return result

    def _sample(
        self,
        input_ids: torch.Tensor,
        logits_processor: Any,
        stopping_criteria: Any,
        generation_config: Any,
        synced_gpus: bool = False,
        streamer: Any = None,
        **model_kwargs: Any,
    ) -> Any:
        settings = (logits_processor, stopping_criteria, generation_config, streamer)
        if not synced_gpus and plain_loop.fits(self, self._parts, generation_config, model_kwargs):
            return plain_loop.generated(self, self._parts, input_ids, model_kwargs, settings)
        return super()._sample(  # type: ignore[misc]
            input_ids, logits_processor, stopping_criteria, generation_config, synced_gpus, streamer, **model_kwargs
        )

    def _supports_mm_encoder_outputs(self) -> bool:
        return False  # encoders run in forward, with everything else

    def _expand_inputs_for_generation(
        self, expand_size: int = 1, is_encoder_decoder: bool = False, input_ids: Any = None, **model_kwargs: Any
    ) -> Any:
        """Features of pictures and sounds are made once, and repeated with their prompt: not all of what they are made
        from has a row a prompt."""
        made: dict[str, Any] | None = None
        if expand_size > 1 and input_ids is not None:
            features = self._parts.encoders.made(model_kwargs)
            made = repeated(features, input_ids, self.config, expand_size)  # type: ignore[attr-defined]
        if made:
            model_kwargs = self._parts.encoders.without_media(model_kwargs)
        ids, model_kwargs = super()._expand_inputs_for_generation(  # type: ignore[misc]
            expand_size, is_encoder_decoder, input_ids, **model_kwargs
        )
        return ids, model_kwargs | (made or {})

    def _validate_generated_length(self, generation_config: Any, length: int, *args: Any, **kwargs: Any) -> None:
        refuse_too_long(self.config, length)  # type: ignore[attr-defined]
        room = self._parts.decoder.room
        if room is not None:
            refuse_no_room(room, length)
            default = args[0] if args else kwargs.get("has_default_max_length")
            if default and generation_config.max_new_tokens is None:
                generation_config.max_length = min(generation_config.max_length, room)
            refuse_no_room(room, length, generation_config.max_length - length)
        super()._validate_generated_length(generation_config, length, *args, **kwargs)  # type: ignore[misc]

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """Stays where it is: pipelines ask a model to move to where it already is."""
        device, dtype, *_ = torch._C._nn._parse_to(*args, **kwargs)
        if (device is None or device.type == "cpu") and dtype in (None, self.dtype):
            return self
        raise problem(
            "E0314", "an exported model stays on the CPU, in the type that it has", "export it in another: --dtype fp16"
        )

    def save_pretrained(self, *_args: Any, **_kwargs: Any) -> Any:
        raise problem(
            "E0314", "this model has no weights of its own: they are in the files that it runs", "copy the folder"
        )


def refuse_too_long(config: Any, tokens: int, *, encoder: bool = False) -> None:
    limit = context_length(config, encoder=encoder)
    if limit is not None and tokens > limit:
        raise problem(
            "E0312",
            f"the prompt has {tokens} tokens, and the model reads at most {limit}",
            f"shorten it, for instance with the tokenizer: tokenizer(..., truncation=True, max_length={limit})",
        )


def generating_model(folder: Folder, cls: Any, opening: Opening) -> Any:
    """An instance of a subclass of `cls` that runs the files of the folder."""
    from transformers import GenerationConfig

    config = read_config(folder, cls)
    parts = Parts(folder, opening, config)
    model = _built(cls, config)
    model._parts = parts
    parts.taken.add_readers(model)
    if (folder.path / "generation_config.json").is_file():
        model.generation_config = GenerationConfig.from_pretrained(folder.path)
    if parts.encoder is not None:
        _replace_encoder(model, parts)
    if isinstance(parts.decoder, ProgramDecoder) and parts.decoder.reads_plain_text:
        model.prepare_inputs_for_generation = _plain_text
    return model


def _plain_text(input_ids: torch.Tensor, attention_mask: torch.Tensor | None = None, **_kwargs: Any) -> dict[str, Any]:
    """What the model's own preparation would add is made in the program."""
    return {"input_ids": input_ids, "attention_mask": attention_mask}


def read_config(folder: Folder, cls: Any) -> Any:
    try:
        return cls.config_class.from_pretrained(folder.path)
    except Exception as error:  # configs refuse values in any way
        what = f"{folder.path / 'config.json'}: {type(error).__name__}: {error}"
        raise problem("E0103", what, "export it again") from error


def _built(cls: Any, config: Any) -> Any:
    """Without weights: on the meta device tensors have shapes and nothing else."""
    from transformers.modeling_outputs import CausalLMOutputWithPast, Seq2SeqLMOutput
    from transformers.utils import ContextManagers

    fallback = Seq2SeqLMOutput if config.is_encoder_decoder else CausalLMOutputWithPast
    dtype = config.dtype or torch.float32
    with building_alone(), ContextManagers(cls.get_init_context(dtype, False, False, None)):
        model = _subclass(cls)(config)
    model._output = output_class(cls.forward, fallback)
    model._fields = fields_of(model._output)
    return model.eval()


@functools.cache
def _subclass(cls: Any) -> Any:
    """Named as the class itself: transformers decides some things by the name. So it does by forward's signature."""

    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        return OnSessions.forward(self, *args, **kwargs)

    own_generate = GenerationMixin.generate if _hands_over(cls) else cls.generate

    @functools.wraps(own_generate)
    def generate(self: Any, *args: Any, **kwargs: Any) -> Any:
        self._generates += 1
        try:
            with one_thread():
                return own_generate(self, *args, **kwargs)
        finally:
            self._generates -= 1

    signature = inspect.signature(cls.forward)
    if _hands_over(cls):
        signature = _with_positions(signature)
    forward.__signature__ = signature  # type: ignore[attr-defined]
    body = {
        "__module__": cls.__module__,
        "__doc__": cls.__doc__,
        "forward": forward,
        "generate": generate,
        "_parameters_of_forward": list(signature.parameters)[1:],
    }
    if _hands_over(cls):
        body["main_input_name"] = "input_ids"
    return type(cls.__name__, (OnSessions, cls), body)


def _hands_over(cls: Any) -> bool:
    """Whether its `generate` calls that of a model inside, which has no weights here, and not that of its base."""
    code = inspect.unwrap(cls.generate).__code__
    return "generate" in code.co_names and "__class__" not in code.co_freevars


def _with_positions(signature: inspect.Signature) -> inspect.Signature:
    """As that of the model inside has it: `generate` counts positions for those that take them."""
    parameters = dict(signature.parameters)
    last = [parameters.pop(name) for name, p in signature.parameters.items() if p.kind is p.VAR_KEYWORD]
    positions = inspect.Parameter("position_ids", inspect.Parameter.KEYWORD_ONLY, default=None)
    parameters.setdefault("position_ids", positions)
    return signature.replace(parameters=[*parameters.values(), *last])


def _replace_encoder(model: Any, parts: Parts) -> None:
    """`generate` calls the encoder on its own, before the decoder starts."""
    from transformers.modeling_outputs import BaseModelOutput

    encoder = model.get_encoder()
    if encoder is model:
        return
    signature = inspect.signature(encoder.forward)
    names, output = list(signature.parameters), output_class(type(encoder).forward, BaseModelOutput)

    def forward(*args: Any, **kwargs: Any) -> Any:
        given = dict(zip(names, args, strict=False)) | kwargs
        if given.get("input_ids") is not None:
            refuse_too_long(model.config, given["input_ids"].shape[1], encoder=True)
        results = parts.encode(given)
        named = {name.removesuffix("_out"): value for name, value in results.items()}  # an input had the name
        made = output(**{name: named.pop(name) for name in fields_of(output) if name in named})
        for name, value in named.items():  # encoders give more than they are annotated with: a mask of their states
            made[name] = value
        return made

    forward.__signature__ = signature  # type: ignore[attr-defined]
    encoder.forward = forward
