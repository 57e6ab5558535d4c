"""The model that an artifact is held against, loaded as transformers loads it."""

from __future__ import annotations

import copy
import dataclasses
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from ..base.errors import problem
from ..base.json_text import parse_json
from ..base.structure import flatten
from ..models.locks import building_alone
from ..values.tolerance import same_values


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Without its progress bars and advice: what matters is in our own report."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity(logging.CRITICAL)
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def read_preprocessor(folder: str | os.PathLike[str]) -> dict[str, Any] | None:
    path = Path(folder) / "preprocessor_config.json"
    try:
        found = parse_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise problem("E0103", f"{path}: {error}", "download it again") from error
    return found if isinstance(found, dict) else None


def load_model(folder: str | os.PathLike[str], model_class: Any = None, dtype: torch.dtype | None = None) -> Any:
    """The model of a checkpoint folder with its weights; `model_class` is a class, or its name in transformers."""
    from ..weights.checkpoint import Checkpoint, find_class, read_config

    folder = Path(folder)
    written = read_config(folder)
    Checkpoint(folder)  # refuses pickles and broken files, with a way out
    chosen = find_class(folder, written, model_class)
    settings = {} if dtype is None else {"dtype": dtype}
    with building_alone(), quiet_transformers():
        model = chosen.from_pretrained(folder, trust_remote_code=False, **settings)
    return model.eval()


@dataclasses.dataclass
class Values:
    """What a model gives, by dotted name, and which of it the next run would give otherwise."""

    by_name: dict[str, Any]
    random: list[Any]

    def is_random(self, value: Any) -> bool:
        return any(value is drawn for drawn in self.random)


def values_of(model: Any, inputs: Mapping[str, Any]) -> Values:
    """Inputs and random state stay as they are. A model that asked for random numbers runs once more with others."""
    rng = torch.get_rng_state()
    try:
        given = _run(model, inputs)
        random = []
        if not torch.equal(torch.get_rng_state(), rng):
            again = _run(model, inputs)
            varies = [name for name, value in given.items() if not _equal(value, again.get(name))]
            given |= {name: torch.as_tensor(given[name]) for name in varies}  # numbers, too
            random = [given[name] for name in varies]
    finally:
        torch.set_rng_state(rng)
    return Values(given, random)


@torch.no_grad()
def _run(model: Any, inputs: Mapping[str, Any]) -> dict[str, Any]:
    flat = flatten(model(**copy.deepcopy(dict(inputs))))
    return dict(zip(flat.names, flat.leaves, strict=True))


def _equal(value: Any, again: Any) -> bool:
    """Whether two runs gave the same; kernels may add in another order each time."""
    both = isinstance(value, torch.Tensor) and isinstance(again, torch.Tensor)
    return same_values(again, value) if both else value is again or bool(value == again)
