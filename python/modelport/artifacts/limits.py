"""What an artifact is valid for: one record, read from it, held against every call."""

from __future__ import annotations

import functools
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from .. import _artifact
from ..base.errors import ExportError, problem
from ..base.json_text import parse_json

_artifact.set_exception_class(ExportError)

_AGAIN = "export again with inputs like these as the example"


class Limits:
    """`check_sizes` and `check_data` raise E0304, with the model's line, where a call is outside."""

    def __init__(self, json_text: str):
        self._text = json_text
        self._record = _artifact.Limits(json_text)
        self.inputs: list[str] = self._record.inputs()
        self.checks: list[dict[str, Any]] = self._record.checks()
        self.state: list[tuple[str, str]] = self._record.state()
        self.frozen: dict[str, Any] = dict(self._record.frozen())

    @property
    def ranges(self) -> dict[str, tuple[int, int | None]]:
        """The sizes that each axis may take, by its name."""
        return self._record.ranges()

    @property
    def conditions(self) -> list[str]:
        return self._record.conditions()

    @property
    def words(self) -> list[str]:
        """One line for each limit that a caller could meet."""
        return self._record.words()

    def check_sizes(self, shapes: Sequence[Sequence[int]]) -> None:
        """`shapes` are in the order of `inputs`."""
        self._record.check(shapes)

    def without_repeated(self, sizes: Mapping[str, Sequence[int]]) -> Limits:
        """The same with one of all inputs that have an equal shape and these equal sizes: a cache has dozens."""
        record, seen, kept = parse_json(self._text), set(), []
        for row in record["inputs"]:
            alike = (str(row["shape"]), tuple(sizes[row["name"]])) if row["name"] in sizes else row["name"]
            if alike not in seen:
                kept.append(row)
            seen.add(alike)
        return Limits(json.dumps(record | {"inputs": kept}))

    def broken_by(self, shapes: Sequence[Sequence[int]]) -> str | None:
        """The first limit that these sizes break, in words."""
        try:
            self.check_sizes(shapes)
        except ExportError as error:
            return error.diagnostics[0]["what"]
        return None

    def check_data(self, truths: Sequence[bool]) -> None:
        """What the outputs of `checks` were."""
        for check, truth in zip(self.checks, truths, strict=True):
            if not truth:
                where = {key: check[key] for key in ("file", "line", "function", "module")}
                raise problem("E0304", f"{check['what']}; these inputs are another case", _AGAIN, where=where)


class WithLimits(ABC):
    """A file that has its limits in a note."""

    @abstractmethod
    def note(self, key: str) -> str | None:
        """A text that the exporter left, without the prefix of its key."""

    @functools.cached_property
    def limits(self) -> Limits | None:
        """What the file is valid for; None in a file that does not say."""
        text = self.note("limits")
        return None if text is None else Limits(text)

    @property
    def ranges(self) -> dict[str, tuple[int, int | None]]:
        """The sizes that each axis may take, by its name."""
        return self.limits.ranges if self.limits else {}


class CallLimits:
    """One session's calls: what is fed and asked for besides the model's own inputs and outputs, and kept between."""

    def __init__(self, limits: Limits | None):
        self.limits = limits
        self.state: dict[str, Any] = {}

    @property
    def check_outputs(self) -> list[str]:
        return [check["output"] for check in self.limits.checks] if self.limits else []

    @property
    def state_outputs(self) -> list[str]:
        return [output for _, output in self.limits.state] if self.limits else []

    @property
    def further_outputs(self) -> list[str]:
        """To be asked for after the model's own."""
        return self.state_outputs + self.check_outputs

    def check_shapes(self, feeds: Mapping[str, Any], shape_of: Any) -> None:
        if self.limits is not None:
            self.limits.check_sizes([shape_of(feeds[name]) for name in self.limits.inputs])

    def take(self, results: Sequence[Any], truth_of: Any) -> None:
        """The results of `further_outputs`: conditions are tested before anything is kept."""
        if self.limits is None or not results:
            return
        count = len(self.limits.state)
        self.limits.check_data([truth_of(value) for value in results[count:]])
        self.state = {name: value for (name, _), value in zip(self.limits.state, results[:count], strict=True)}

    def reset(self) -> None:
        """As it was when the model was exported."""
        self.state = {}


def check_frozen(name: str, given: Any, frozen: Any) -> None:
    """An argument that is no tensor became part of the program."""
    is_array = hasattr(given, "shape")
    if is_array or isinstance(given, bool) != isinstance(frozen, bool) or given != frozen:
        shown = f"{type(given).__name__} of shape {list(given.shape)}" if is_array else repr(given)
        raise problem(
            "E0301",
            f"{name} was {frozen!r} in the example and is part of the program; {shown} is another program",
            f"leave {name} out",
            f"export again with {name} as you want it",
        )
