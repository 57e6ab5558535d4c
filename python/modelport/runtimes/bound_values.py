"""Values that a session of onnxruntime reads and writes where they are: bound once, run again and again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..artifacts.limits import Limits
from .onnxruntime import integers_value, memory_of, shape_of


class BoundValues:
    """`kept` are inputs and outputs at once, under pairs of names; `wanted` are the other outputs."""

    def __init__(
        self,
        session: Any,
        limits: Limits | None,
        kept: Sequence[Any],
        names: Sequence[tuple[str, str]],
        wanted: Sequence[str],
    ):
        self._session, self._binding = session, session.io_binding()
        self._kept, self._wanted = kept, list(wanted)
        self._places = {name: place for place, name in enumerate(dict.fromkeys(wanted))}  # one may be wanted twice
        self._shapes = {past: shape_of(value) for (past, _), value in zip(names, kept, strict=True)}
        self._limits = None if limits is None else limits.without_repeated(self._shapes)
        self._fed: set[str] = set()
        self._results: list[Any] = []
        self._views: dict[int, Any] = {}  # bytes of results, where they lie, by their place
        self.runs = 0
        self._bind_wanted()  # first, and so they come out first
        for (past, present), value in zip(names, kept, strict=True):
            self._binding.bind_ortvalue_input(past, value)
            self._binding.bind_ortvalue_output(present, value)

    def fits(self, kept: Sequence[Any], wanted: Sequence[str], feeds: Mapping[str, Any]) -> bool:
        """Whether it is ready for such a call, which may set fewer flags than the one before it."""
        return self._kept is kept and self._wanted == wanted and self._fed <= feeds.keys()

    def take(self, feeds: Mapping[str, Any]) -> None:
        """The inputs that are others than in the last call. What the file is not for is refused."""
        self._fed |= feeds.keys()
        self._check_sizes({name: shape_of(value) for name, value in feeds.items()})
        for name, value in feeds.items():
            self._binding.bind_ortvalue_input(name, value)

    def take_integers(self, name: str, array: Any) -> None:
        """The same of one input, an array of int64 that is dense."""
        self._check_sizes({name: list(array.shape)})
        self._binding.bind_ortvalue_input(name, integers_value(array))

    def _check_sizes(self, shapes: Mapping[str, list[int]]) -> None:
        self._shapes.update(shapes)
        if self._limits is not None:
            self._limits.check_sizes([self._shapes[name] for name in self._limits.inputs])

    def run(self, *, again: bool = False) -> list[Any]:
        """What is wanted. With `again` it lies where it lay after the last call, whose sizes it has; else it is the
        caller's, as soon as that has made tensors of it: the values themselves are good until the next run."""
        self.runs += 1
        if again:
            self._session.run_with_iobinding(self._binding)
            return self._results
        self._bind_wanted()
        self._session.run_with_iobinding(self._binding)
        from onnxruntime import OrtValue

        found = self._binding.get_outputs_as_ortvaluevector()
        self._results = [OrtValue(found[self._places[name]]) for name in self._wanted]
        self._views = {}
        return self._results

    def is_true(self, place: int) -> bool:
        """Whether all is true that the last run gave for this of what is wanted; a step asks it again and again."""
        if place not in self._views:
            self._views[place] = memory_of(self._results[place])
        return b"\0" not in self._views[place].raw

    def _bind_wanted(self) -> None:
        for name in self._places:
            self._binding.bind_output(name, "cpu")
