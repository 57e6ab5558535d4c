"""Export of what was observed: one graph that serves every stored call, proven on them before it is written."""

from __future__ import annotations

import dataclasses
import os
import re
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from ..base.errors import ExportError, problem
from ..base.structure import flatten
from ..capturing.captured import Captured
from ..exporters.configs import OnnxConfig
from ..exporters.onnx import OnnxExporter
from ..exporters.onnx_program import OnnxProgram
from ..values.tolerance import same_values
from .example import Example
from .layout import Batch
from .plan import Calls, Plan
from .windows import windows_by_tensors
from .zero_sizes import ExplicitSizes

Tensors = Mapping[str, torch.Tensor]
_MOST_DOUBTFUL = 4


def export(
    model: Any, method: Callable[..., Any], calls: Calls, batch: Batch, path: Any, config: Any
) -> tuple[OnnxProgram, Plan]:
    """The first plan by which the model itself gives what it gave, and whose graph does so too."""
    if not isinstance(model, torch.nn.Module):
        raise problem(
            "E0313",
            f"a {type(model).__name__} is no torch module, and its weights cannot be found",
            "make it an attribute of a torch.nn.Module whose forward calls it, and observe that",
        )
    config = OnnxConfig.given(config)
    failures: list[ExportError] = []
    for plan in _plans(calls, method, batch, failures):
        try:
            program, plan = _exported(model, method, plan, batch, config)
        except ExportError as error:
            failures.append(error)
            continue
        if path is not None:
            program.save(os.fspath(path))
        return program, plan
    raise _nothing_serves(calls, failures)


def _plans(calls: Calls, method: Callable[..., Any], batch: Batch, failures: list[ExportError]) -> Iterator[Plan]:
    """Plans by which the model gives what it gave, then those on which it does not run: with nothing in a tensor, eager
    PyTorch cannot tell what -1 in a shape stands for, and a graph can."""
    doubtful: list[Plan] = []
    for choices in calls.choices():
        try:
            plan = Plan(calls, choices, batch)
            _check_model(plan, method)
            yield plan
        except ExportError as error:
            failures.append(error)
            if error.code == "E0205":
                doubtful.append(plan)
    yield from doubtful[:_MOST_DOUBTFUL]


def _exported(
    model: torch.nn.Module, method: Callable[..., Any], plan: Plan, batch: Batch, config: OnnxConfig
) -> tuple[OnnxProgram, Plan]:
    rows = next((symbol for symbol in plan.layout.symbols.values() if symbol.is_batch), None)
    if not batch or rows is None or rows.varies:
        return _captured(model, method, plan, config), plan
    # A batch that no call varied is a wish: a model that takes one size only keeps the one observed.
    try:
        return _captured(model, method, plan, config), plan
    except ExportError as error:
        plan = Plan(plan.calls, plan.layout.choices)
        try:
            program = _captured(model, method, plan, config)
        except ExportError:
            raise error from None
        what = error.diagnostics[0]["what"]
        warnings.warn(f"the batch stays {rows.largest} as in the calls; with another, {what}", stacklevel=4)
        return program, plan


def _captured(model: torch.nn.Module, method: Callable[..., Any], plan: Plan, config: OnnxConfig) -> OnnxProgram:
    shapes = named_shapes(plan) if config.dynamic_shapes is None else config.dynamic_shapes
    asked = dataclasses.replace(config, dynamic=False, dynamic_shapes=shapes, output_path=None)
    program = _lowered(model, method, plan, asked)
    unused = _unused(plan, program)
    if not unused or config.dynamic_shapes is not None:
        return program
    plan.hide(unused)
    try:
        return _lowered(model, method, plan, dataclasses.replace(asked, dynamic_shapes=named_shapes(plan)))
    except ExportError:  # a size was read from one of them
        plan.hide([])
        return program


def _lowered(model: torch.nn.Module, method: Callable[..., Any], plan: Plan, config: OnnxConfig) -> OnnxProgram:
    with windows_by_tensors(), ExplicitSizes():
        program = OnnxExporter().export(taking_tensors(model, method, plan), Example(plan).tensors, config)
    return OnnxProgram(program.captured, config, program.opset) if admit(plan, program.captured) else program


def _unused(plan: Plan, program: OnnxProgram) -> list[str]:
    """Tensors inside arguments that nothing in the graph reads: what an encoder returned besides its features."""
    text = str(program.captured)
    nested = [leaf.name for leaf in plan.inputs if leaf.nested]
    # The first place is its declaration.
    return [name for name in nested if len(re.findall(rf"%{re.escape(name)}(?![\w.])", text)) < 2]


def taking_tensors(model: torch.nn.Module, method: Callable[..., Any], plan: Plan) -> torch.nn.Module:
    """The model under a forward that takes tensors by their dotted names and calls the observed method. It shares the
    modules and weights, so that these keep their names; hooks are not part of the method."""

    def forward(**tensors: torch.Tensor) -> Any:
        args, kwargs = plan.as_call(plan.arguments(tensors))
        return plan.without_settings(method(*args, **kwargs))

    view: Any = object.__new__(type(model))
    view.__dict__ = dict(model.__dict__)
    for hooks in ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks"):
        view.__dict__[hooks] = OrderedDict()
    view.__dict__["forward"] = forward
    return view


def named_shapes(plan: Plan) -> dict[str, dict[int, Any]]:
    """Named dimensions for each tensor; those that were empty in a call, or may be, start at 0."""
    from torch.export import Dim

    dims = {}
    for symbol in (symbol for symbol in plan.layout.symbols.values() if symbol.is_axis):
        low = 0 if 0 in symbol.sizes or symbol.is_state else 1
        dims[symbol.name] = Dim(symbol.name, min=low)
    return {
        leaf.name: {
            axis: dims[found.name] for axis in range(leaf.rank) if (found := plan.layout.symbol(leaf.name, axis))
        }
        for leaf in plan.inputs
    }


def _check_model(plan: Plan, method: Callable[..., Any]) -> None:
    """Calls that the plan changed: the model has to give what it gave in them."""
    for call in range(len(plan.calls.inputs)):
        if not plan.changes(call):
            continue
        number = plan.calls.which[call]
        tensors = {name: tensor.clone() for name, tensor in plan.tensors(call).items()}
        try:
            with torch.no_grad():
                args, kwargs = plan.as_call(plan.arguments(tensors))
                result = flatten(method(*args, **kwargs)).tensors()
        except Exception as error:
            what = f"the model does not run on call {number} with stand-ins for what the call lacks: {error}"
            raise problem("E0205", what, *_apart(plan.calls)) from error
        _compare(plan, call, result, "the model, with stand-ins for what the call lacks,")


def admit(plan: Plan, captured: Captured) -> bool:
    """Checks the graph on every call. A call of a size that a guard of the model excludes is a test of that guard:
    where the graph gives what was observed, the guard makes no difference and goes. True if one went."""
    widened = False
    for call, number in enumerate(plan.calls.which):
        tensors = plan.tensors(call)
        sizes = {name: symbol.sizes[call] for name, symbol in plan.layout.symbols.items()}
        outside = _outside(captured.program, sizes)
        program = captured.program.copy()
        for name, bounds in outside.items():
            program.set_range(name, *bounds)
        trial = Captured(program, captured.inputs, captured.outputs, captured.in_graph)
        try:
            with torch.no_grad():
                result = flatten(trial.run(**tensors)).tensors()
        except ExportError as error:
            what = f"the graph does not take call {number}: {error.diagnostics[0]['what']}"
            raise problem(error.code, what, *_apart(plan.calls)) from error
        _compare(plan, call, result, "the graph")
        for name, bounds in outside.items():
            captured.program.set_range(name, *bounds)
        widened = widened or bool(outside)
    return widened


def _outside(program: Any, sizes: Mapping[str, int | None]) -> dict[str, tuple[int, int | None]]:
    """Ranges that are too narrow for these sizes, as wide as they need to be."""
    found: dict[str, tuple[int, int | None]] = {}
    for dim in program.dims():
        size, low, high = sizes.get(dim["name"]), dim["lo"], dim["hi"]
        if size is not None and (size < low or (high is not None and size > high)):
            found[dim["name"]] = (min(size, low), high if high is None else max(size, high))
    return found


def _compare(plan: Plan, call: int, result: Tensors, who: str) -> None:
    wanted = {n: tensor for n, tensor in plan.calls.outputs[call].items() if n not in plan.settings}
    for name, want in wanted.items():
        got = result.get(name)
        if got is None or not same_values(got.to(want.device), want):
            number = plan.calls.which[call]
            raise problem(
                "E0401", f"{who} gives another {name} in call {number} than was observed", *_apart(plan.calls)
            )


def _apart(calls: Calls) -> list[str]:
    """Calls that have the same tensors go together."""
    alike: dict[tuple[str, ...], list[int]] = {}
    for number, call in zip(calls.which, calls.inputs, strict=True):
        alike.setdefault(tuple(call.tensors), []).append(number)
    if len(alike) < 2:
        return ["model.eval()", "a state that the model keeps in itself between calls: give it as an argument"]
    return [f"observer.export(path, calls={group})" for group in alike.values()]


def _nothing_serves(calls: Calls, failures: list[ExportError]) -> ExportError:
    # An attempt that came as far as a graph tells most.
    first = next((e for e in failures if "the graph" in str(e)), failures[0])
    if len(failures) == 1:
        return first
    what = first.diagnostics[0]["what"]
    where = {key: first.diagnostics[0][key] for key in ("file", "line", "function", "module")}
    return problem(first.code, f"no single graph serves all calls: {what}", *_apart(calls), where=where)
