"""Captures whose weights have no contents in memory: they lie in files, or in another type in the model."""

from __future__ import annotations

from typing import Any, Protocol

from ..capturing.captured import Captured
from ..weights.checkpoint import StoredTensor
from ..weights.packed import PackedWeight
from ..weights.streams import WeightStreams
from ..weights.weight_names import Source
from .checkpoint_weights import CheckpointWeights, WeightsOfPart


class Contents(Protocol):
    """Where the contents are."""

    def fill(self) -> None:
        """Gives the weights their contents."""

    def streams(self) -> WeightStreams: ...


class LazyCaptured(Captured):
    """A capture of weights without contents. `program` has their values, read where they must be."""

    def __init__(self, captured: Captured, contents: Contents | None):
        self._plain = captured
        self._contents = contents
        super().__init__(captured.lazy_program, captured.inputs, captured.outputs, captured.in_graph)
        self.attempts = captured.attempts

    @property
    def program(self) -> Any:
        if self._contents is not None:
            self._contents.fill()
        return self._plain.program

    @program.setter
    def program(self, program: Any) -> None:
        self._plain.program = program

    @property
    def lazy_program(self) -> Any:
        return self._plain.lazy_program

    def streams(self) -> WeightStreams:
        """Where a writer takes the weights of the graph from."""
        if self._contents is None:
            return self._plain.streams() if isinstance(self._plain, LazyCaptured) else WeightStreams()
        known, found = self.lazy_program.weights(), self._contents.streams()
        return WeightStreams(
            {name: place for name, place in found.places.items() if name in known},
            {name: made for name, made in found.made.items() if name in known or name.rpartition(".")[0] in known},
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
        return "\n".join(filter(None, (self._plain.report(), self.example)))


class CheckpointCaptured(LazyCaptured):
    """A capture whose weights are in the files of a checkpoint."""

    def __init__(self, captured: Captured, weights: CheckpointWeights | WeightsOfPart | None):
        super().__init__(captured, weights)
        self._weights = weights
        self.source = weights.folder if weights is not None else None

    @property
    def bytes_held(self) -> int:
        """How much memory weights may take: none where they are in their files alone."""
        if isinstance(self._weights, CheckpointWeights) and not self._weights.filled:
            return 0
        return sum(tensor.nbytes for tensor in self.lazy_program.weights().values())

    def weight_files(self) -> dict[str, StoredTensor]:
        """For each weight of the graph that is stored as it is used: the file and the place in it."""
        if self._weights is not None:
            self._weights.checkpoint.have_contents()
        return {name: s.as_stored for name, s in self._sources().items() if s.as_stored is not None}

    def refuse_changed(self) -> None:
        """Raises where the files are not those that were opened any more."""
        if self._weights is not None:
            self._weights.checkpoint.refuse_changed()

    def packed_weights(self) -> dict[str, PackedWeight]:
        """The weights that the checkpoint has as codes, where kernels take them so."""
        packed = {name: source.packed for name, source in self._sources().items()}
        return {name: weight for name, weight in packed.items() if weight is not None and weight.fits_kernels}

    def converted_weights(self) -> dict[str, Source]:
        """The weights that are made of stored tensors: which ones, and by which steps."""
        return {name: s for name, s in self._sources().items() if s.as_stored is None}

    def _sources(self) -> dict[str, Source]:
        sources = self._weights.sources if self._weights is not None else {}
        return {name: sources[name] for name in self.lazy_program.weights() if name in sources}
