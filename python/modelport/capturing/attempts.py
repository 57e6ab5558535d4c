"""Which run of the model gives its graph."""

from __future__ import annotations

from typing import Any

from ..base import core
from ..base.errors import ExportError
from ..base.structure import Flat
from ..quick_imports import deferred
from ..symbolic.rolled import Unroll, rolling, was_used
from ..symbolic.substitutes import Use, forget_uses, installed, noted_uses, uses
from ..weights.lazy_weights import before_reading
from .captured import Captured
from .comparison import right_at
from .dynamic import Axes
from .recording import Trial, record


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
        return record(model, flat, axes, core.Session(False), trial)
    except Exception as error:  # whatever it is, the capture with data either works or reports it
        if isinstance(_origin(error), Unroll):
            raise
        # Sizes that do not fit and values that are not there are no matter of kernels.
        if getattr(error, "code", "") not in ("E0202", "E0206") and deferred.load():
            return _capture_fastest(model, flat, axes, trial)
        before_reading(model, error, trial=bool(trial))
    try:
        return record(model, flat, axes, core.Session(True), trial)
    except ExportError as error:
        if trial or error.code != "E0205" or isinstance(_origin(error), Unroll):
            raise
        failure = error
    try:
        return record(model, flat, axes, core.Session(True), trial, exporting=False)
    except Exception:
        raise failure from failure.__cause__
