"""A model in memory, captured: the search for a run that gives its graph, and what is tested afterwards."""

from __future__ import annotations

from typing import Any

import torch

from ..base.structure import flatten
from ..models.locks import only_user, while_nobody_builds
from ..models.state import no_garbage_collection, random_state_kept, remembered
from ..symbolic.interception import interception
from ..symbolic.substitutes import noted_uses
from .arguments import as_keywords, check_inputs
from .attempts import capture_once
from .captured import Captured
from .dynamic import axes_for
from .guards import tested
from .model_memory import refuse_memory


def capture_model(
    model: Any, inputs: Any, *, dynamic: bool = False, dynamic_shapes: Any = None, test_guards: bool = True
) -> Captured:
    """`modelport.capture` of a model, or any callable on tensors, with the weights that it has."""
    kwargs = as_keywords(model, inputs)
    check_inputs(model, kwargs)
    flat = flatten(kwargs)
    axes = axes_for(flat, dynamic=dynamic, dynamic_shapes=dynamic_shapes)
    with (
        only_user(model),
        while_nobody_builds(),
        no_garbage_collection(),
        random_state_kept(),
        noted_uses(),
        interception(),
        remembered(model if isinstance(model, torch.nn.Module) else None),
    ):
        captured = capture_once(model, flat, axes)
        if captured.left:
            refuse_memory(model, captured, axes)
        if test_guards and axes.symbols:
            captured = tested(model, captured, axes)
    axes.report_pinned(captured)
    return captured
