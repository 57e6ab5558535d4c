"""Where a model that sees or hears is to be cut: found by watching it generate."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from transformers.cache_utils import Cache

from .continuing import CALLS
from .cutting import Cut, Producer
from .decompose import is_multimodal
from .watching import Call, by_name, swapped, watch_generate

FEATURES = re.compile(r"get_(image|video|audio)_features")


def sees_or_hears(model: Any) -> bool:
    kinds = {type(part) for part in model.modules()}
    return is_multimodal(model) or any(FEATURES.fullmatch(name) for kind in kinds for name in dir(kind))


def find_cut(model: Any, inputs: Mapping[str, Any], generation_config: Any = None) -> Cut | None:
    """None where nothing makes features, or nothing takes embeddings."""
    modules = {name: part for name, part in model.named_modules() if _takes_embeddings(part)}
    with ExitStack() as stack:
        producers = stack.enter_context(_methods(model))
        calls = watch_generate(model, inputs, modules, CALLS, generation_config)
        running = [name for name in modules if len(calls[name]) == CALLS]
        if not running:
            return None
        stepping, steps = modules[running[0]], calls[running[0]]
        if not producers:
            watched = stack.enter_context(_modules_of_the_prompt(model, stepping, _modality(inputs)))
            watch_generate(model, inputs, {}, CALLS, generation_config)
            producers = watched()
    if not producers:
        return None
    if stepping is not model:
        return Cut(model, dict(inputs), stepping, steps, (stepping, "generate"), producers)
    inner = next((name for name in running[1:] if all(_has_embeddings(call) for call in calls[name])), None)
    return None if inner is None else Cut(model, steps[0], model, steps, (modules[inner], "forward"), producers)


def _takes_embeddings(module: torch.nn.Module) -> bool:
    return "inputs_embeds" in inspect.signature(module.forward).parameters


def _has_embeddings(call: Call) -> bool:
    return "inputs_embeds" in call and "input_ids" not in call and any(isinstance(v, Cache) for v in call.values())


def _modality(inputs: Mapping[str, Any]) -> str:
    return "image" if any("pixel" in name or "image" in name for name in inputs) else "audio"


@contextmanager
def _methods(model: torch.nn.Module) -> Iterator[list[Producer]]:
    """Calls of methods that make features; one that calls another is one."""
    found: list[Producer] = []
    depth = 0

    def watching(producer: Producer) -> Callable[..., Any]:
        method = getattr(producer.owner, producer.method)
        signature = inspect.signature(method)

        def watch(*args: Any, **kwargs: Any) -> Any:
            nonlocal depth
            depth += 1
            try:
                result = method(*args, **kwargs)
            finally:
                depth -= 1
            if not depth:
                producer.calls.append(by_name(signature, args, kwargs))
                producer.results.append(result)
                if producer not in found:
                    found.append(producer)
            return result

        return watch

    with ExitStack() as stack:
        for part in model.modules():
            for name in dir(type(part)):
                if match := FEATURES.fullmatch(name):
                    stack.enter_context(swapped(part, name, watching(Producer(part, name, match[1]))))
        yield found


@contextmanager
def _modules_of_the_prompt(
    model: torch.nn.Module, stepping: torch.nn.Module, modality: str
) -> Iterator[Callable[[], list[Producer]]]:
    """Modules that are called for the prompt and not for the steps after it: they work on pictures or sound. One inside
    another is not counted."""
    active: list[torch.nn.Module] = []
    seen: list[tuple[torch.nn.Module, list[torch.nn.Module], Call, Any]] = []
    of_steps: set[torch.nn.Module] = set()
    reading = True

    def before(module: torch.nn.Module, _args: Any) -> None:
        active.append(module)
        if not reading:
            of_steps.add(module)

    def after(module: torch.nn.Module, args: Any, kwargs: Any, result: Any) -> None:
        nonlocal reading
        active.pop()
        if reading:
            seen.append((module, list(active), dict(enumerate(args)) | kwargs, result))
        if module is stepping:
            reading = False

    def found() -> list[Producer]:
        producers: dict[torch.nn.Module, Producer] = {}
        for module, around, call, result in seen:
            own = module not in of_steps and all(outer in of_steps or outer is model for outer in around)
            if own and module is not model:
                producer = producers.setdefault(module, Producer(module, "forward", modality))
                producer.calls.append(call)
                producer.results.append(result)
        return list(producers.values())

    handles = []
    for part in model.modules():
        handles.append(part.register_forward_pre_hook(before))
        handles.append(part.register_forward_hook(after, with_kwargs=True))
    try:
        yield found
    finally:
        for handle in handles:
            handle.remove()
