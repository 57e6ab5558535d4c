"""Scales of weights in few bits, searched while a model is imported and captured.

The search takes longer than all else of writing such weights, and needs neither torch nor the model: matrices of the
checkpoint and the number of bits do. Which of them are weights of products turns out later, and a matrix that is none
was searched for nothing, on a processor that had nothing else to do. The files are the same, to the byte."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from .. import _artifact
from ..base.errors import ExportError

Place = tuple[Any, ...]  # file, offset and type, then maybe what was found

_searches: list[_artifact.SearchAhead] = []
_found: dict[tuple[str, int], tuple[Any, ...]] = {}


@contextmanager
def scales_ahead(checkpoint: Path, quantization: Mapping[str, Any], *, halves: bool) -> Iterator[None]:
    """Inside, weights of this checkpoint that are quantized so are written with what was found until then."""
    with suppress(ExportError):  # of files that cannot be read: whoever needs them says so
        search = _artifact.SearchAhead(
            os.fspath(checkpoint),
            bits=quantization["bits"],
            block_size=quantization["block_size"],
            zero_points=not quantization["symmetric"],
            halves=halves,
        )
        _searches.append(search)
    try:
        yield
    finally:
        _searches.clear()
        _found.clear()


def with_scales(places: Mapping[str, Place]) -> dict[str, Place]:
    """Where weights are, with their scales where they are known. Ends a search: what follows takes all processors."""
    while _searches:
        _found.update(_searches.pop().found())
    if not _found:
        return dict(places)
    return {name: _with_scales(place) for name, place in places.items()}


def _with_scales(place: Place) -> Place:
    found = _found.get((place[0], place[1]))
    return place if found is None else (*place, found)
