"""Encoders of pictures and sounds: the rows of features that they make, once or for prompts that come several times."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from ..runtimes.runner import Runner

# Inputs of encoders in folders for transformers.js, and what transformers calls them.
SHORTER = {"grid_thw": "image_grid_thw"}


class Encoders:
    """The files that make features."""

    def __init__(self, sessions: list[Runner], feeds: Callable[..., dict[str, torch.Tensor]]):
        self._sessions, self._feeds = sessions, feeds

    @property
    def outputs(self) -> list[str]:
        return [name for session in self._sessions for name in session.outputs]

    def made(self, given: Mapping[str, Any]) -> dict[str, torch.Tensor]:
        """The features of whatever is given."""
        made: dict[str, torch.Tensor] = {}
        given = {**given, **{ours: given[name] for ours, name in SHORTER.items() if name in given}}
        for session in self._sessions:
            if _has_something_for(session, given):
                made |= _one_by_one(session, self._feeds(session, given))
        return made

    def without_media(self, given: Mapping[str, Any]) -> dict[str, Any]:
        media = {SHORTER.get(name, name) for session in self._sessions for name in session.inputs}
        return {name: value for name, value in given.items() if name not in media}


def _has_something_for(session: Runner, given: Mapping[str, Any]) -> bool:
    """Whether there are pictures or sounds: grids and masks may be there without what they belong to."""
    return any(given.get(name) is not None for name, slot in session.inputs.items() if slot.dtype.is_floating_point)


def _one_by_one(session: Runner, feeds: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """A file for one picture or sound at a time is run for each."""
    single = [name for name, slot in session.inputs.items() if slot.shape and slot.shape[0] == 1]
    count = max((len(feeds[name]) for name in single), default=1)
    if count < 2:
        return session.tensors(feeds)
    runs = [session.tensors(feeds | {name: feeds[name][i : i + 1] for name in single}) for i in range(count)]
    return {name: torch.cat([run[name] for run in runs]) for name in runs[0]}


def repeated(features: Mapping[str, torch.Tensor], ids: torch.Tensor, config: Any, times: int) -> dict[str, Any] | None:
    """Features for prompts each of which comes so many times in a row. Which rows belong to a prompt follows from its
    tokens; None where that is not known."""
    made = {}
    for name, rows in features.items():
        modality = name.split("_")[0]
        token = getattr(config, f"{modality}_token_id", getattr(config, f"{modality}_token_index", None))
        counts = [] if token is None else (ids == token).sum(1).tolist()
        if sum(counts) != len(rows):
            return None
        made[name] = torch.cat([piece for own in rows.split(counts) for piece in [own] * times])
    return made
