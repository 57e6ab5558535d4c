"""A model as transformers loads it, without its progress bars and advice."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from ..base.settings_file import read_settings
from ..models.locks import building_alone
from .adapter import adapter_in, base_of
from .checkpoint import Checkpoint, find_class, read_class_config, read_config


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
    try:
        return read_settings(Path(folder) / "preprocessor_config.json")
    except FileNotFoundError:
        return None


def load_model(folder: str | os.PathLike[str], model_class: Any = None, dtype: torch.dtype | None = None) -> Any:
    """The model of a checkpoint folder with its weights; `model_class` is a class, or its name in transformers."""
    folder = Path(folder)
    written = read_config(folder)
    Checkpoint(folder).have_contents()  # refuses pickles and broken files, with a way out
    chosen = find_class(folder, written, model_class)
    with quiet_transformers():
        return load_class(folder, chosen, dtype)


def load_class(folder: Path, model_class: Any, dtype: torch.dtype | None = None) -> Any:
    """As transformers loads the class from the folder; an adapter is merged into its base."""
    settings: dict[str, Any] = {} if dtype is None else {"dtype": dtype}
    adapter = adapter_in(folder)
    if adapter is not None:
        model_class, settings["config"] = read_class_config(folder, model_class)
        adapter.fit(settings["config"])
    with building_alone():
        model = model_class.from_pretrained(base_of(folder), trust_remote_code=False, **settings)
    if adapter is not None:
        adapter.merge_into(model)
    return model.eval()
