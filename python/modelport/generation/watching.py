"""What `generate` does, seen from outside: the calls that it makes, with the caches as they were before each."""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from transformers.cache_utils import Cache
from transformers.generation.utils import ALL_CACHE_NAMES

from ..base.errors import problem
from ..models.transformers_private import PREPARE_CACHE, TAKES_FEATURES, needed
from .caches import keep_whole_past, keep_windows

Call = dict[str, Any]


@contextmanager
def watched(module: torch.nn.Module) -> Iterator[list[Call]]:
    """The arguments of every call of the module by name; those that are None or left out are not among them."""
    calls: list[Call] = []
    forward = module.forward
    signature = inspect.signature(forward)

    @functools.wraps(forward)
    def watching(*args: Any, **kwargs: Any) -> Any:
        calls.append(_as_it_was(by_name(signature, args, kwargs)))
        return forward(*args, **kwargs)

    had_its_own = "forward" in vars(module)
    module.forward = watching  # type: ignore[method-assign]
    try:
        yield calls
    finally:
        if had_its_own:
            module.forward = forward  # type: ignore[method-assign]
        else:
            del module.forward


def by_name(signature: inspect.Signature, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Call:
    bound = dict(signature.bind_partial(*args, **kwargs).arguments)
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            bound.update(bound.pop(parameter.name, {}))
    return {name: value for name, value in bound.items() if value is not None}


def _as_it_was(call: Call) -> Call:
    """Caches change while the model runs, whatever they are made of; tensors and everything else do not."""
    return {n: copy.deepcopy(v) if isinstance(v, Cache) or n in ALL_CACHE_NAMES else v for n, v in call.items()}


def watch_generate(
    model: Any,
    inputs: Mapping[str, Any],
    modules: Mapping[str, torch.nn.Module],
    new_tokens: int,
    generation_config: Any = None,
    whole_past: bool = True,
) -> dict[str, list[Call]]:
    """Runs `model.generate` greedily for so many tokens and gives the calls of each of the modules. With `whole_past`,
    layers that keep a window of the past keep all of it."""
    refuse_if_it_cannot_generate(model)
    settings = copy.deepcopy(generation_config if generation_config is not None else model.generation_config)
    settings.max_new_tokens = settings.min_new_tokens = new_tokens
    settings.max_length = settings.min_length = None
    settings.num_beams, settings.do_sample = 1, False
    static = getattr(settings, "cache_implementation", None) is not None
    with ExitStack() as stack, torch.no_grad():
        seen = {name: stack.enter_context(watched(module)) for name, module in modules.items()}
        stack.enter_context(_seen_whole(model))
        for part in () if static else generating_parts(model).values():
            stack.enter_context(_caches_changed(part, keep_whole_past if whole_past else keep_windows))
        try:
            model.generate(**copy.deepcopy(dict(inputs)), generation_config=settings)
        except Exception as error:
            raise problem(
                "E0205",
                f"generate failed on these inputs: {type(error).__name__}: {error}",
                f"check that this runs: model.generate({', '.join(f'{name}=...' for name in inputs)})",
            ) from error
    return seen


def generating_parts(model: torch.nn.Module) -> dict[str, Any]:
    """The model and those inside it that have a `generate` of their own, by name."""
    return {name: part for name, part in model.named_modules() if hasattr(part, PREPARE_CACHE)}


def refuse_if_it_cannot_generate(model: Any) -> None:
    """`model` may be a class, too."""
    can = getattr(model, "can_generate", None)
    if can is None or not can():
        cls = model if isinstance(model, type) else type(model)
        raise problem(
            "E0311",
            f"{cls.__name__} cannot generate: it has no head that gives the next token",
            "export it as it is: OnnxExporter().export(model, inputs)",
            "load the class that generates, such as AutoModelForCausalLM or AutoModelForSeq2SeqLM",
        )
    needed(model, PREPARE_CACHE, "exporting a model that generates")


@contextmanager
def _seen_whole(model: Any) -> Iterator[None]:
    """Everything happens in forward, where it is seen: generate would run encoders of images before it."""
    with ExitStack() as stack:
        if hasattr(model, TAKES_FEATURES):
            stack.enter_context(swapped(model, TAKES_FEATURES, lambda: False))
        yield


@contextmanager
def _caches_changed(model: Any, change: Callable[[Cache], None]) -> Iterator[None]:
    """Caches that `generate` makes are changed before they are used."""
    prepare = needed(model, PREPARE_CACHE, "watching a model generate")

    def prepared(generation_config: Any, model_kwargs: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        result = prepare(generation_config, model_kwargs, *args, **kwargs)
        for value in model_kwargs.values():
            if isinstance(value, Cache):
                change(value)
        return result

    with swapped(model, PREPARE_CACHE, prepared):
        yield


@contextmanager
def swapped(owner: Any, name: str, function: Callable[..., Any]) -> Iterator[None]:
    """Another method of this one object; its signature stays, because models look at it."""
    before = vars(owner).get(name)
    setattr(owner, name, functools.wraps(getattr(owner, name))(function))
    try:
        yield
    finally:
        if before is None:
            delattr(owner, name)
        else:
            setattr(owner, name, before)
