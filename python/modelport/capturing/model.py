"""A model in memory, captured: the search for a run that gives its graph, and what is tested afterwards."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import torch

from ..base.structure import Flat, flatten
from ..models.locks import only_user, while_nobody_builds
from ..models.state import no_garbage_collection, random_state_kept, remembered
from ..symbolic.interception import interception
from ..symbolic.shown_symbols import noted_questions
from ..symbolic.substitutes import answering_what_symbols_are, noted_uses
from .arguments import as_keywords, check_inputs
from .attempts import capture_once
from .batch_of_one import serves_one_row, with_two_rows
from .captured import Captured
from .dynamic import Axes, axes_for
from .guards import tested
from .model_memory import refuse_memory
from .own_code import has_own_code, own_scopes, wrong_at, wrong_values


def capture_model(
    model: Any,
    inputs: Any,
    *,
    dynamic: bool = False,
    dynamic_shapes: Any = None,
    test_guards: bool = True,
    grow_batch: bool = True,
    join_lists: bool = True,
) -> Captured:
    """`modelport.capture` of a model, or any callable on tensors, with the weights that it has."""
    kwargs = as_keywords(model, inputs)
    check_inputs(model, kwargs)
    flat = flatten(kwargs)
    two_rows = with_two_rows(flat) if dynamic and dynamic_shapes is None and grow_batch else None
    if two_rows is not None:
        with suppress(Exception):  # not every model takes two: then it is captured as the caller has it
            axes = axes_for(two_rows, dynamic=True, dynamic_shapes=None, join_lists=join_lists)
            captured = _captured_as(model, two_rows, axes, test_guards)
            if serves_one_row(captured.program, flat):
                return captured
    axes = axes_for(flat, dynamic=dynamic, dynamic_shapes=dynamic_shapes, join_lists=join_lists)
    return _captured_as(model, flat, axes, test_guards)


def _captured_as(model: Any, flat: Flat, axes: Axes, test_guards: bool) -> Captured:
    with (
        only_user(model),
        while_nobody_builds(),
        no_garbage_collection(),
        random_state_kept(),
        noted_uses(),
        interception(),
        answering_what_symbols_are(own_scopes(model)),
        remembered(model if isinstance(model, torch.nn.Module) else None),
    ):
        with noted_questions(pinned=False) as asked:
            captured = _captured(model, flat, axes, test_guards=test_guards)
            wrong = wrong_at(model, captured, asked) if test_guards and has_own_code(model) else None
        if wrong is not None and asked.shown:
            with noted_questions(pinned=True) as asked:
                captured = _captured(model, flat, axes, test_guards=test_guards)
                wrong = wrong_at(model, captured, asked)
    if wrong is not None:
        raise wrong_values(wrong)
    axes.report_pinned(captured)
    return captured


def _captured(model: Any, flat: Flat, axes: Axes, *, test_guards: bool) -> Captured:
    captured = capture_once(model, flat, axes)
    if captured.left:
        refuse_memory(model, captured, axes)
    return tested(model, captured, axes) if test_guards and axes.symbols else captured
