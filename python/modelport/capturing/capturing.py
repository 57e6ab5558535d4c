"""`capture(model, inputs)`: run the model once on example inputs and get the graph of what it computed."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import IntEnum
from typing import Any

import torch

from ..base import core
from ..base.errors import ExportError, problem
from ..base.place import model_line
from ..base.structure import Flat, flatten, plain_spec, unflatten
from ..models.locks import only_user, while_nobody_builds
from ..models.state import (
    Submodules,
    forget_sizes,
    no_garbage_collection,
    random_state_kept,
    remembered,
    state_of,
    submodules,
)
from ..patches.function_caches import forgotten
from ..patches.registry import patched_models
from ..quick_imports import deferred as left_out
from ..symbolic.interception import intercepted, interception
from ..symbolic.rolled import Unroll, rolling, was_used
from ..symbolic.substitutes import Use, forget_uses, installed, noted_uses, uses
from ..weights.lazy import before_reading
from .captured import Captured
from .dynamic import Axes, axes_for
from .model_memory import left_behind, refuse_memory

_LABELS = ("labels", "future_values", "return_loss")
_SYMBOLS = (torch.SymInt, torch.SymFloat, torch.SymBool)


def capture(
    model: torch.nn.Module | Callable[..., Any] | str | os.PathLike[str],
    inputs: Mapping[str, Any] | tuple[Any, ...],
    *,
    dynamic: bool = False,
    dynamic_shapes: Any = None,
    test_guards: bool = True,
    model_class: Any = None,
    dtype: torch.dtype | None = None,
) -> Captured:
    """Captures a model, or any callable on tensors, as a graph that computes the same.

    `inputs` are keyword arguments (a mapping) or positional ones (a tuple); nested structures and caches are fine.
    `dynamic=True` makes every axis longer than 1 symbolic; `dynamic_shapes` says it axis by axis, in the forms that
    `torch.export` takes, with plain strings as names too. With `test_guards`, a condition that the model asked of a
    size is tried out at a size on its other side and dropped where it makes no difference.

    A path names a checkpoint folder: the model is captured without reading its weights. `model_class` (a class or its
    name in transformers) is for a folder whose config.json names none, or another than the one wanted.

    `dtype` captures the model as if it had been loaded in that type, of which the floating inputs are, too; its weights
    stay as they are, and are converted when they are written or used.
    """
    if isinstance(model, str | os.PathLike):
        from ..lazy.checkpoint_model import capture_folder

        options = {"dynamic": dynamic, "dynamic_shapes": dynamic_shapes, "test_guards": test_guards}
        return capture_folder(model, inputs, model_class=model_class, dtype=dtype, **options)
    if dtype is not None and isinstance(model, torch.nn.Module):
        from ..lazy.cast import capture_recast

        options = {"dynamic": dynamic, "dynamic_shapes": dynamic_shapes, "test_guards": test_guards}
        return capture_recast(model, inputs, dtype, **options)
    kwargs = _as_keywords(model, inputs)
    _check_inputs(model, kwargs)
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
            from .guards import tested

            captured = tested(model, captured, axes)
    axes.report_pinned(captured)
    return captured


class Trial(IntEnum):
    """A capture at another size, which records no bounds."""

    NONE = 0
    COMPARED = 1  # its graph is compared and forgotten: lines of the model are left out
    KEPT = 2  # its graph may take the place of the first


def capture_once(model: Any, flat: Flat, axes: Axes, *, trial: Trial = Trial.NONE) -> Captured:
    """One capture at the sizes of `flat`, its guards as the model made them.

    Model code that pins symbols by `int(...)` or `len(...)` is captured again with substitutes for these. A `trial`
    records no bounds, to compare its graph with that of another size."""
    with noted_uses():
        known = uses()
        captured = _capture_with(model, flat, axes, trial, known)
        for _ in range(_ROUNDS):
            found = uses()
            if found <= known:
                break
            try:
                captured = _capture_with(model, flat, axes, trial, found)
            except Exception:  # with substitutes the model does not run: what it pinned stays pinned
                forget_uses(found - known)
                break
            known = found
        return _without_substitutes(model, flat, axes, trial, captured) if known else captured


def _without_substitutes(model: Any, flat: Flat, axes: Axes, trial: Trial, captured: Captured) -> Captured:
    """A number that stayed symbolic only to be pinned a line later did harm: as a plain number it is a guard on the
    size, and a graph from its other side may serve all sizes."""
    if not _pins(captured, axes):
        return captured
    try:
        plain = _capture_with(model, flat, axes, trial, frozenset())
    except Exception:
        return captured
    better = _pins(plain, axes) <= _pins(captured, axes) and _branches(plain) <= _branches(captured)
    return plain if better else captured


def _branches(captured: Captured) -> int:
    """How many values of the data have to be as they were; conditions on them leave them some room."""
    return sum(not isinstance(row["expected"], str) for row in captured.assumptions)


def _pins(captured: Captured, axes: Axes) -> int:
    """How many numbers that the data decides were pinned."""
    pinned = (guard["symbols"] for guard in captured.guards if guard["effect"] == "pinned")
    return sum(axes.symbols.keys().isdisjoint(symbols) for symbols in pinned)


_ROUNDS = 4  # each may reach code that the one before did not


def _capture_with(model: Any, flat: Flat, axes: Axes, trial: Trial, known: frozenset[Use]) -> Captured:
    """Loops over items stay rolled where the graph then gives the values of the model; else they are unrolled."""
    with installed(known):
        try:
            with rolling(True):
                captured = _capture_fastest(model, flat, axes, trial)
            if not was_used() or _gives_values(model, captured):
                return captured
        except Exception as error:
            if not was_used() and not isinstance(_origin(error), Unroll):
                raise
        with rolling(False):
            return _capture_fastest(model, flat, axes, trial)


def _gives_values(model: Any, captured: Captured) -> bool:
    from .guards import right_at

    return right_at(model, captured, captured.inputs, {})


def _origin(error: BaseException) -> BaseException:
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def _capture_fastest(model: Any, flat: Flat, axes: Axes, trial: Trial) -> Captured:
    """Shapes are enough for most models: what depends on a parameter is not computed, so that a capture is quicker than
    a forward pass. Where the model asks for a value, it is captured again with everything computed. A model that fails
    in the branches that it takes for exporters (its own bug, if it runs without) is captured as it runs for people."""
    try:
        return _capture(model, flat, axes, core.Session(False), trial)
    except Exception as error:  # whatever it is, the capture with data either works or reports it
        if isinstance(_origin(error), Unroll):
            raise
        # Sizes that do not fit and values that are not there are no matter of kernels.
        if getattr(error, "code", "") not in ("E0202", "E0206") and left_out.load():
            return _capture_fastest(model, flat, axes, trial)
        before_reading(model, error, trial=bool(trial))
    try:
        return _capture(model, flat, axes, core.Session(True), trial)
    except ExportError as error:
        if trial or error.code != "E0205" or isinstance(_origin(error), Unroll):
            raise
        failure = error
    try:
        return _capture(model, flat, axes, core.Session(True), trial, exporting=False)
    except Exception:
        raise failure from failure.__cause__


def _capture(model: Any, flat: Flat, axes: Axes, session: Any, trial: Trial, *, exporting: bool = True) -> Captured:
    if trial:
        session.set_trial(trial is Trial.COMPARED)
    for symbol in axes.symbols.values():
        session.declare(symbol.name, symbol.hint(flat), symbol.low, symbol.high)
    with _recorded(model, flat, axes, session, exporting) as result:
        in_graph = [_add_output(session, n, v) for n, v in zip(result.names, result.leaves, strict=True)]
        spec = plain_spec(result.spec)
        left = left_behind(model, session)
    constants = [None if inside else leaf for inside, leaf in zip(in_graph, result.leaves, strict=True)]
    program = session.finish(_graph_name(model))
    captured = Captured(program, flat, Flat(result.names, constants, spec), in_graph)
    captured.left = left
    return captured


@contextmanager
def _recorded(model: Any, flat: Flat, axes: Axes, session: Any, exporting: bool) -> Iterator[Flat]:
    """What the model gives while the session records; afterwards the model is as it was."""
    leaves = [
        session.add_input(name, leaf, axes.of(name, leaf)) if isinstance(leaf, torch.Tensor) else leaf
        for name, leaf in zip(flat.names, flat.leaves, strict=True)
    ]
    state = state_of(model if isinstance(model, torch.nn.Module) else None)
    _name_weights(session, state.modules)
    rng = torch.get_rng_state()
    classes = {type(child) for _, child in state.modules}
    try:
        with (
            while_nobody_builds(),
            torch.no_grad(),
            state.unchanged(session.protect),
            forgotten(classes),
            intercepted(exporting),
            patched_models(classes),
        ):
            forget_sizes(state.modules)
            session.start()
            try:
                yield flatten(_call(session, model, unflatten(leaves, flat.spec)))
            finally:
                session.stop()
    finally:
        session.restore()
        torch.set_rng_state(rng)


def zeros_of(model: torch.nn.Module, inputs: Mapping[str, Any]) -> Any:
    """What the model gives for these inputs, with zeros for its values: nothing that depends on a parameter is computed
    but its shape."""
    flat = flatten(dict(inputs))
    try:
        with _recorded(model, flat, Axes(), core.Session(False), exporting=True) as result:
            leaves = result.leaves
            zeros = [torch.zeros(tuple(x.shape), dtype=x.dtype) if isinstance(x, torch.Tensor) else x for x in leaves]
            spec = plain_spec(result.spec)
    except Exception:
        if left_out.load():
            return zeros_of(model, inputs)
        raise
    return unflatten(zeros, spec)


def _call(session: Any, model: Any, kwargs: dict[str, Any]) -> Any:
    positional = [kwargs.pop(name) for name in list(kwargs) if name.startswith("*")]
    try:
        return model(*positional, **kwargs)
    except ExportError:
        raise
    except Exception as error:
        session.take_error()  # raises ours, if the failure began in the recorder
        where = model_line(error)
        raise problem(
            "E0205",
            f"the model failed on these inputs: {type(error).__name__}: {error}",
            "check that the model runs on them: model(**inputs)",
            where=where,
        ) from error


def _add_output(session: Any, name: str, leaf: Any) -> bool:
    if not isinstance(leaf, (torch.Tensor, *_SYMBOLS)):
        return False
    session.add_output(name, leaf)
    return True


def _name_weights(session: Any, modules: Submodules) -> None:
    for path, child in modules:
        session.name_module(child, path or type(child).__name__)
        prefix = f"{path}." if path else ""
        for name, parameter in child._parameters.items():
            if parameter is not None:
                session.add_weight(prefix + name, parameter, "parameter")
        for name, buffer in child._buffers.items():
            if buffer is not None:
                saved = name not in child._non_persistent_buffers_set
                session.add_weight(prefix + name, buffer, "buffer" if saved else "buffer_not_saved")


def _as_keywords(model: Any, inputs: Any) -> dict[str, Any]:
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


def _check_inputs(model: Any, kwargs: dict[str, Any]) -> None:
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
    shown = ", ".join(training[:_SHOWN]) + (f" and {len(training) - _SHOWN} more" if len(training) > _SHOWN else "")
    what = "the model is" if len(training) == len(modules) else f"parts of the model are ({shown})"
    raise problem("E0301", f"{what} in training mode, where dropout makes values random", "model.eval()")


_SHOWN = 3  # modules that an error names


def _graph_name(model: Any) -> str:
    if isinstance(model, torch.nn.Module):
        config = getattr(model, "config", None)
        return getattr(config, "model_type", None) or type(model).__name__
    return getattr(model, "__name__", type(model).__name__)
