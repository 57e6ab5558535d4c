"""Which run of the model gives its graph: a list of attempts, each with the reason why it is made.

The first attempt computes shapes only, with loops over items kept rolled, and is the last one for most models. After
each, the rows of `ATTEMPTS` are asked in order; the first that applies says how the model runs next."""

from __future__ import annotations

import dataclasses
import traceback
from collections.abc import Callable
from typing import Any, NamedTuple

from ..base import core
from ..base.errors import ExportError
from ..base.structure import Flat
from ..quick_imports import deferred
from ..symbolic.rolled import rolling, unrolled_a_loop, was_used
from ..symbolic.substitutes import (
    Use,
    forget_uses,
    installed,
    items_run_once,
    note_items,
    noted_uses,
    uses,
)
from ..symbolic.unroll import Unroll
from ..weights.lazy_weights import may_be_read
from .captured import Attempt, Captured
from .comparison import is_wrong, right_at
from .dynamic import Axes
from .recording import Trial, record
from .trial_inputs import resized

_ROUNDS = 4  # of substitutes: each may reach code that the one before did not
FIRST = "shapes only"


def capture_once(model: Any, flat: Flat, axes: Axes, *, trial: Trial = Trial.NONE) -> Captured:
    """One capture at the sizes of `flat`, its guards as the model made them. A `trial` records no bounds, to compare
    its graph with that of another size."""
    with noted_uses():
        return _Search(model, flat, axes, trial).result()


class _Way(NamedTuple):
    """How the model runs."""

    with_values: bool = False  # what depends on a parameter is computed; else its shape alone
    exporting: bool = True  # the model takes its branches for exporters
    rolled: bool = True  # loops over items are kept as one operator
    items: bool = False  # loops that do something to each item run once, for all of them
    substitutes: frozenset[Use] = frozenset()


class _Outcome(NamedTuple):
    """What an attempt came to: a graph that is right, or an error, or neither."""

    name: str
    reason: str
    way: _Way
    captured: Captured | None = None
    error: Exception | None = None
    rolled_a_loop: bool = False  # in this attempt, or in one before it that ran the same code

    def failed_with(self, *codes: str) -> bool:
        return getattr(self.error, "code", "") in codes

    @property
    def asks_to_unroll(self) -> bool:
        return self.error is not None and isinstance(_origin(self.error), Unroll)


class _Search:
    """The attempts so far, and the best of them."""

    def __init__(self, model: Any, flat: Flat, axes: Axes, trial: Trial):
        self.model, self.flat, self.axes, self.trial = model, flat, axes, trial
        self.last = _Outcome("", "", _Way(substitutes=uses(), items=bool(trial) and items_run_once()))
        self.best: _Outcome | None = None
        self.failure: Exception | None = None  # to be raised where nothing works
        self.rounds, self.over = 0, False  # of attempts for a better graph
        self.looped, self.tried_items = False, False
        self.notes: list[Attempt] = []

    def result(self) -> Captured:
        self._attempt(FIRST, "most models need no more", self.last.way)
        while True:
            while (row := self._next(AFTER_A_FAILURE)) is not None:
                self._attempt(row.name, row.reason, row.way(self.last.way))
            self._settle()
            row = None if self.over else self._next(FOR_A_BETTER_GRAPH)
            if row is None:
                break
            self.rounds, self.over = self.rounds + 1, row.is_last
            self._attempt(row.name, row.reason, row.way(self.last.way))
        if self.best is None or self.best.captured is None:
            assert self.failure is not None
            raise self.failure from self.failure.__cause__
        if self.last is not self.best:
            self._leave(self.last, _why_left(self.last))
        captured = self.best.captured
        if not self.trial:
            note_items(self.best.way.items)
        captured.attempts = [*self.notes, Attempt(self.best.name, self.best.reason, "kept")]
        return captured

    def _next(self, rows: tuple[_Row, ...]) -> _Row | None:
        return next((row for row in rows if row.applies(self, self.last)), None)

    def _attempt(self, name: str, reason: str, way: _Way) -> None:
        if self.last.error is not None:
            _free(self.last.error)
        if self.last.name and self.last is not self.best:
            self._leave(self.last, _why_left(self.last))
        self.tried_items = self.tried_items or way.items
        same_code = (way.rolled, way.substitutes) == (self.last.way.rolled, self.last.way.substitutes)
        self.last = self._run(_Outcome(name, reason, way, rolled_a_loop=same_code and self.last.rolled_a_loop))
        if self.last.error is not None and way.exporting:  # else it is what made the model run otherwise that counts
            self.failure = self.last.error

    def _run(self, asked: _Outcome) -> _Outcome:
        way, rolled = asked.way, asked.rolled_a_loop
        session = core.Session(way.with_values)
        with installed(way.substitutes):
            try:
                with rolling(way.rolled, way.items):
                    captured = record(self.model, self.flat, self.axes, session, self.trial, exporting=way.exporting)
            except Exception as error:  # whatever it is, a later attempt either works or reports it
                return asked._replace(error=error, rolled_a_loop=rolled or was_used())
            rolled = rolled or was_used()
            self.looped = self.looped or unrolled_a_loop()
            if rolled and not right_at(self.model, captured, captured.inputs, {}):
                return asked._replace(rolled_a_loop=True)
            if way.items and self._is_wrong_with_more(captured):
                return asked._replace(rolled_a_loop=True)
        return asked._replace(captured=captured, rolled_a_loop=rolled)

    def _is_wrong_with_more(self, captured: Captured) -> bool:
        """Whether the graph gives other values than the model at a larger size, as far as both run there."""
        sizes = ({dim["name"]: dim["hint"] + 1} for dim in captured.program.dims() if not dim["from_data"])
        return any(is_wrong(self.model, captured, resized(captured, size)) for size in sizes)

    def _settle(self) -> None:
        """Compares the last attempt with the best before it."""
        last, best = self.last, self.best
        if last.captured is None:
            if best is not None:  # with substitutes the model does not run: what it pinned stays pinned
                forget_uses(last.way.substitutes - best.way.substitutes)
                self.rounds = _ROUNDS
        elif best is None or best.captured is None or self._is_better(last, best.captured):
            if best is not None:
                self._leave(best, f"the graph {last.name} is better")
            self.best = last

    def _is_better(self, last: _Outcome, before: Captured) -> bool:
        assert last.captured is not None
        if last.way.items:
            return _pinned(last.captured) < _pinned(before)
        if last.way.substitutes:
            return True
        fewer = self.pins(last.captured) <= self.pins(before)
        return fewer and _branches(last.captured) <= _branches(before)

    def _leave(self, outcome: _Outcome, why: str) -> None:
        self.notes.append(Attempt(outcome.name, outcome.reason, why))

    def pins(self, captured: Captured) -> int:
        """How many numbers that the data decides were pinned."""
        pinned = (guard["symbols"] for guard in captured.guards if guard["effect"] == "pinned")
        return sum(self.axes.symbols.keys().isdisjoint(symbols) for symbols in pinned)


def _pinned(captured: Captured) -> int:
    return sum(guard["effect"] == "pinned" for guard in captured.guards)


def _branches(captured: Captured) -> int:
    """How many values of the data have to be as they were; conditions on them leave them some room."""
    return sum(not isinstance(row["expected"], str) for row in captured.assumptions)


def _origin(error: BaseException) -> BaseException:
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def _free(error: BaseException) -> None:
    """The tensors of a run that failed are not kept by its error."""
    seen: BaseException | None = error
    while seen is not None:
        traceback.clear_frames(seen.__traceback__)
        seen = seen.__cause__ or seen.__context__


def _why_left(outcome: _Outcome) -> str:
    if outcome.captured is not None:
        return "it pins more than the graph before it"
    if outcome.error is None:
        return "its rolled loop does not give the model's values"
    return (str(outcome.error).splitlines() or [type(outcome.error).__name__])[0]


# --- the rows -------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class _Row:
    """An attempt that is made after another: its name, why, when, and how the model then runs."""

    name: str
    reason: str
    applies: Callable[[_Search, _Outcome], bool]
    way: Callable[[_Way], _Way]
    is_last: bool = False


def _lacks_a_kernel(_search: _Search, last: _Outcome) -> bool:
    # Sizes that do not fit and values that are not there are no matter of kernels.
    failed = last.error is not None and not last.way.with_values and not last.asks_to_unroll
    return failed and not last.failed_with("E0202", "E0206") and deferred.load()


def _asks_for_values(search: _Search, last: _Outcome) -> bool:
    if last.error is None or last.way.with_values or last.asks_to_unroll:
        return False
    return may_be_read(search.model, last.error, trial=bool(search.trial))


def _fails_for_exporters(search: _Search, last: _Outcome) -> bool:
    failed = isinstance(last.error, ExportError) and last.failed_with("E0205") and not last.asks_to_unroll
    return failed and last.way.with_values and last.way.exporting and not search.trial


def _rolls_in_vain(search: _Search, last: _Outcome) -> bool:
    if last.captured is not None or not last.way.rolled or (last.way.items and not search.trial):
        return False
    return last.rolled_a_loop or last.asks_to_unroll


def _pins_sizes(search: _Search, last: _Outcome) -> bool:
    """Where builtins got sizes since the last attempt began."""
    went = last is search.best or (last.way.items and last.captured is not None)
    return went and search.rounds < _ROUNDS and not uses() <= last.way.substitutes


def _goes_through_items(search: _Search, _last: _Outcome) -> bool:
    best = search.best
    if search.tried_items or not search.looped or best is None or best.captured is None or search.trial:
        return False
    pinned = (guard["symbols"] for guard in best.captured.guards if guard["effect"] == "pinned")
    return any(not search.axes.symbols.keys().isdisjoint(symbols) for symbols in pinned)


def _pins_data(search: _Search, _last: _Outcome) -> bool:
    best = search.best
    if best is None or best.captured is None or best.way.items:
        return False
    return bool(best.way.substitutes) and search.pins(best.captured) > 0


def _mistakes_items(_search: _Search, last: _Outcome) -> bool:
    """Where model code asked what an item is, and got no answer that it can use."""
    return last.error is not None and last.way.items and not uses() <= last.way.substitutes


AFTER_A_FAILURE = (
    _Row(
        "with substitutes for isinstance",
        "the model's code asks what an item is",
        _mistakes_items,
        lambda way: way._replace(substitutes=uses()),
    ),
    _Row(
        "with every kernel",
        "a kernel may be missing that a quick start left out",
        _lacks_a_kernel,
        lambda way: way,
    ),
    _Row(
        "with values",
        "the model asks for values that depend on a parameter",
        _asks_for_values,
        lambda way: way._replace(with_values=True),
    ),
    _Row(
        "as it runs for people",
        "the model fails in the branches that it takes for exporters",
        _fails_for_exporters,
        lambda way: way._replace(exporting=False),
    ),
    _Row(
        "with loops unrolled",
        "a loop that was kept rolled does not do what the model does",
        _rolls_in_vain,
        lambda way: _Way(rolled=False, substitutes=way.substitutes),
    ),
)
FOR_A_BETTER_GRAPH = (
    _Row(
        "with substitutes for builtins",
        "int, len, range, list, sum, min, max or np.zeros in the model's code pin sizes",
        _pins_sizes,
        lambda way: _Way(substitutes=uses(), items=way.items),
    ),
    _Row(
        "with loops over items run once",
        "a loop over items pins how many there are",
        _goes_through_items,
        lambda _: _Way(substitutes=uses(), items=True),
    ),
    _Row(
        "without substitutes",
        "a number of the data stayed symbolic only to be pinned; as a plain number it is a guard on a size",
        _pins_data,
        lambda _: _Way(),
        is_last=True,
    ),
)
