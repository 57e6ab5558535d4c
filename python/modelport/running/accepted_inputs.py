"""Which tensors change what a folder's model says; one that changes nothing is refused rather than ignored."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterable, Mapping
from typing import Any

from ..artifacts.ir import read_artifact
from ..base.errors import problem
from ..runtimes.runner import Runner
from .features import SHORTER
from .folder import Folder
from .inputs import name_in_python

# Worked out from the tokens, the mask and the cache; `generate` has tokens of an own kind for each side.
_FOLLOWING = frozenset(
    ("input_ids", "decoder_input_ids", "position_ids", "decoder_position_ids", "cache_position", "logits_to_keep")
)


def _example_names(folder: Folder, role: str) -> Iterable[str]:
    """Programs are for one text: what a mask hides from them is refused where they are called."""
    return ("attention_mask",) if folder.methods else read_artifact(folder.files[role]).example_names


class Taken:
    """The names of tensors that are read: by a file, by code that works out what a file takes, or that were there when
    the model was exported, so that a file would take them if they made a difference."""

    def __init__(self, folder: Folder, opened: Mapping[str, Runner], features: Iterable[str]):
        decoders = (folder.decoder, folder.prefill)
        self.names: set[str] = {*features}
        at_export: set[str] = set()
        for role, session in opened.items():
            beside_encoder = role in decoders and folder.encoder is not None
            self.names |= {name_in_python(SHORTER.get(name, name), beside_encoder) for name in session.inputs}
            at_export |= set(_example_names(folder, role))
        self._takes_positions = "position_ids" in self.names
        self.names |= at_export | _FOLLOWING
        self._is_known = bool(at_export)  # else the files are older, or of another exporter

    def add_readers(self, model: Any) -> None:
        """What the class itself works out in Python: positions in pictures follow from their grids."""
        if self._takes_positions:
            for owner in (model, getattr(model, "base_model", None)):
                reader = getattr(owner, "get_rope_index", None)
                self.names |= set(inspect.signature(reader).parameters) if reader is not None else set()

    def refuse_others(self, given: Mapping[str, Any]) -> None:
        for name, value in given.items() if self._is_known else ():
            if name in self.names or not hasattr(value, "shape"):
                continue
            if name.endswith("mask") and bool((value != 0).all()):
                continue  # hides nothing
            alike = difflib.get_close_matches(name, sorted(self.names), 1)
            raise problem(
                "E0301",
                f"the exported files take no {name}: the model was exported without it",
                *(f"did you mean {other}=...?" for other in alike),
                f"export with example inputs that have {name}",
                f"leave {name} out",
            )
