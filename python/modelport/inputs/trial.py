"""Runs of the model for the sake of a question: no gradients, no output, nothing left behind."""

from __future__ import annotations

import copy
import functools
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from .making import Subject


def quietly(subject: Subject, call: Callable[[], Any], inputs: dict[str, Any]) -> tuple[Any, Exception | None]:
    """What the call gives, or the exception that it ended with. Floats of the inputs get the type of the model."""
    with _silence(), torch.no_grad(), torch.random.fork_rng(devices=[]), _evaluating(subject.model):
        settle(subject, inputs)
        try:
            return call(), None
        except Exception as error:  # a model may refuse inputs in any way
            return None, error


def refusal(subject: Subject, inputs: dict[str, Any]) -> Exception | None:
    """What the model raises on these inputs."""
    model = subject.model
    own = {name: copy.deepcopy(value) for name, value in inputs.items()}
    return quietly(subject, lambda: model(**own), own)[1]


def ignores(subject: Subject, inputs: dict[str, Any], name: str) -> bool:
    """Whether the model gives the same values without this input."""
    model = subject.model
    runs = []
    for given in (dict(inputs), {key: value for key, value in inputs.items() if key != name}):
        own = copy.deepcopy(given)
        result, error = quietly(subject, functools.partial(model, **own), own)
        if error is not None:
            return False
        runs.append(_tensors(result))
    return all(a.isfinite().all() and torch.equal(a, b) for a, b in zip(*runs, strict=True))


def _tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [leaf for part in value for leaf in _tensors(part)] if isinstance(value, (list, tuple)) else []


def settle(subject: Subject, inputs: dict[str, Any]) -> None:
    """Moves the inputs to where the model is, and floats to its type."""
    device, dtype = subject.settings()
    for name, value in inputs.items():
        if isinstance(value, torch.Tensor):
            inputs[name] = value.to(device, dtype if value.is_floating_point() else value.dtype)


@contextmanager
def _silence() -> Iterator[None]:
    from transformers.utils import logging

    level = logging.get_verbosity()
    logging.set_verbosity(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.set_verbosity(level)


@contextmanager
def _evaluating(model: torch.nn.Module) -> Iterator[None]:
    """In training a run would change the statistics of batch norms."""
    training = [module for module in model.modules() if module.training]
    for module in training:
        module.training = False
    try:
        yield
    finally:
        for module in training:
            module.training = True
