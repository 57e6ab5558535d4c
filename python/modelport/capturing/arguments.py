"""The arguments of a capture: inputs by name, and what cannot be captured refused."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import torch

from ..base.errors import problem
from ..base.printable import listed
from ..models.state import submodules

_LABELS = ("labels", "future_values", "return_loss")


def as_keywords(model: Any, inputs: Any) -> dict[str, Any]:
    if isinstance(inputs, Mapping):
        return dict(inputs)
    if isinstance(inputs, torch.Tensor):
        inputs = (inputs,)
    names = [p.name for p in _parameters(model) if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    names += [f"*{i}" for i in range(len(names), len(inputs))]
    return dict(zip(names, inputs, strict=False))


def _parameters(model: Any) -> list[inspect.Parameter]:
    function = model.forward if isinstance(model, torch.nn.Module) else model
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return []


def check_inputs(model: Any, kwargs: dict[str, Any]) -> None:
    for label in _LABELS:
        if kwargs.get(label) is not None and kwargs[label] is not False:
            raise problem("E0301", f"the inputs have '{label}': a loss cannot be exported", f"inputs.pop('{label}')")
    refuse_training(model)
    parameters = _parameters(model)
    if not parameters or any(p.kind == p.VAR_KEYWORD for p in parameters):
        return
    known = {p.name for p in parameters}
    unknown = [name for name in kwargs if name not in known and not name.startswith("*")]
    if unknown:
        raise problem(
            "E0301",
            f"the model takes no input {', '.join(map(repr, unknown))}",
            f"it takes: {', '.join(p.name for p in parameters)}",
        )


def refuse_training(model: Any) -> None:
    """Every module is asked: `eval()` of a model does not reach a part that is set to training mode afterwards."""
    modules = submodules(model) if isinstance(model, torch.nn.Module) else []
    training = [path or "the model itself" for path, module in modules if module.training]
    if not training:
        return
    what = "the model is" if len(training) == len(modules) else f"parts of the model are ({listed(training, 3)})"
    raise problem("E0305", f"{what} in training mode, where dropout makes values random", "model.eval()")
