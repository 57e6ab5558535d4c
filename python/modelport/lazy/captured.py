"""Captures whose weights have no contents in memory: they lie in files, or in another type in the model."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Protocol

import torch

from ..capturing.captured import Captured


@dataclasses.dataclass
class Streams:
    """Where a writer takes weights from, by name, other than the program's own tensors. What has another type than
    those is converted on the way."""

    places: dict[str, tuple[str, int, torch.dtype]] = dataclasses.field(default_factory=dict)  # file, offset
    made: dict[str, tuple[torch.dtype, Callable[[], torch.Tensor]]] = dataclasses.field(default_factory=dict)


class Contents(Protocol):
    """Where the contents are."""

    def fill(self) -> None:
        """Gives the weights their contents."""

    def streams(self) -> Streams: ...


class CapturedUnfilled(Captured):
    """A capture of weights without contents. `program` has their values, read where they must be."""

    def __init__(self, captured: Captured, contents: Contents | None):
        self._plain = captured
        self._contents = contents
        super().__init__(captured.unread_program, captured.inputs, captured.outputs, captured.in_graph)

    @property
    def program(self) -> Any:
        if self._contents is not None:
            self._contents.fill()
        return self._plain.program

    @program.setter
    def program(self, program: Any) -> None:
        self._plain.program = program

    @property
    def unread_program(self) -> Any:
        return self._plain.unread_program

    def streams(self) -> Streams:
        """Where a writer takes the weights of the graph from."""
        if self._contents is None:
            return self._plain.streams() if isinstance(self._plain, CapturedUnfilled) else Streams()
        known, found = self.unread_program.weights(), self._contents.streams()
        return Streams(
            {name: place for name, place in found.places.items() if name in known},
            {name: made for name, made in found.made.items() if name in known},
        )

    # What shows the graph needs no values.

    def __str__(self) -> str:
        return str(self._plain)

    def __repr__(self) -> str:
        return repr(self._plain)

    @property
    def output_names(self) -> list[str]:
        return self._plain.output_names

    @property
    def guards(self) -> list[dict[str, Any]]:
        return self._plain.guards

    @property
    def assumptions(self) -> list[dict[str, Any]]:
        return self._plain.assumptions

    def report(self) -> str:
        return self._plain.report()
