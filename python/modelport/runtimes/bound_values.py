"""Values that a session of onnxruntime reads and writes where they are: bound once, run again and again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..artifacts.limits import Limits
from ..base.errors import ExportError
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
        self._bytes: dict[int, list[Any]] = {}  # of results from a place on, where they lie
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

    def integers(self, name: str, arrays: Iterable[Any]) -> list[Any]:
        """Values of one input for the next runs, of dense arrays of int64. Those from the first on that the file is not
        for are left out; where that is the first of all, it is refused."""
        values: list[Any] = []
        for array in arrays:
            try:
                self._check_sizes({name: list(array.shape)})
            except ExportError:
                if values:
                    break
                raise
            values.append(integers_value(array))
        return values

    def _check_sizes(self, shapes: Mapping[str, list[int]]) -> None:
        self._shapes.update(shapes)
        if self._limits is not None:
            self._limits.check_sizes([self._shapes[name] for name in self._limits.inputs])

    def run_again(self, name: str, value: Any) -> None:
        """With one of `integers`, the rest as in the last call: what is wanted lies where it lay, in the same sizes."""
        self.runs += 1
        self._binding.bind_ortvalue_input(name, value)
        self._session.run_with_iobinding(self._binding)

    def run(self) -> list[Any]:
        """What is wanted. It is the caller's, as soon as that has made tensors of it: the values themselves are good
        until the next run."""
        self.runs += 1
        self._bind_wanted()
        self._session.run_with_iobinding(self._binding)
        from onnxruntime import OrtValue

        found = self._binding.get_outputs_as_ortvaluevector()
        self._results = [OrtValue(found[self._places[name]]) for name in self._wanted]
        self._bytes = {}
        return self._results

    def truths(self, start: int) -> list[bool]:
        """Of what is wanted from this place on: whether all is true that the last run gave. Every step asks."""
        if start not in self._bytes:
            self._bytes[start] = [memory_of(value) for value in self._results[start:]]
        return [b"\0" not in found.raw for found in self._bytes[start]]

    def _bind_wanted(self) -> None:
        for name in self._places:
            self._binding.bind_output(name, "cpu")
