"""Values that a session of onnxruntime reads and writes where they are: bound once, run again and again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..artifacts.limits import Limits
from .onnxruntime import shape_of


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
        self._shapes = {past: shape_of(value) for (past, _), value in zip(names, kept, strict=True)}
        self._limits = None if limits is None else limits.without_repeated(self._shapes)
        self._fed: set[str] = set()
        self._results: list[Any] = []
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
        for name, value in feeds.items():
            self._shapes[name] = shape_of(value)
        if self._limits is not None:
            self._limits.check_sizes([self._shapes[name] for name in self._limits.inputs])
        for name, value in feeds.items():
            self._binding.bind_ortvalue_input(name, value)

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
        self._results = [OrtValue(found[i]) for i in range(len(self._wanted))]
        return self._results

    def _bind_wanted(self) -> None:
        for name in self._wanted:
            self._binding.bind_output(name, "cpu")
