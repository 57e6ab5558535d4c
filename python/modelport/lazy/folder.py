"""Capture from a checkpoint folder: the model is built from its configuration, its weights stay in their files."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from ..base.errors import ExportError
from ..capturing.model import capture_model
from ..models.locks import building_alone
from ..models.transformers_private import generation_config_among_settings
from ..quick_imports import deferred
from ..weights import lazy_weights
from ..weights.adapter import base_of
from ..weights.checkpoint import Checkpoint, find_class, read_config
from ..weights.loading import load_class, load_model, quiet_transformers
from ..weights.packed import read_format
from .captured import CheckpointCaptured
from .checkpoint_weights import CheckpointWeights, NeedsValues, reason_of
from .dtype import capture_in_dtype


def capture_folder(
    path: str | os.PathLike[str],
    inputs: Any,
    *,
    model_class: Any = None,
    dtype: Any = None,
    around: Callable[[Any], AbstractContextManager[None]] = nullcontext,
    **options: Any,
) -> CheckpointCaptured:
    """`capture` of the model in a folder without reading its weights; what cannot be done so reads them and says so.
    The model is captured within `around(model)`."""
    folder = Path(path)
    opening = _Opening(folder, model_class, dtype)
    try:
        weights = opening.weights()
        with weights.unread(), around(weights.model):
            captured = capture_model(weights.model, inputs, **options)
    except Exception as error:  # the constructor of a model can fail in any way
        opening.warn_of_loading(error)
        opening.checkpoint.have_contents()
        model = load_class(folder, opening.model_class)
        with around(model):
            if dtype is None:
                loaded = capture_model(model, inputs, **options)
            else:
                loaded = capture_in_dtype(model, inputs, dtype, **options)
        return CheckpointCaptured(loaded, None)
    if weights.refused:
        warnings.warn(
            f"{folder}: conditions on sizes that only values could decide are kept as the model asked them "
            "(captured.report() lists them); to have them tried, load the model: modelport.capture(model, inputs)",
            stacklevel=3,
        )
    return CheckpointCaptured(captured, weights)


def open_model(path: str | os.PathLike[str], *, model_class: Any = None, dtype: Any = None) -> Any:
    """The model in a folder, over weights that stay in their files: an export points to them or copies them from there,
    and only what computes with the model reads them. Where that cannot be, they are loaded, and a warning says so."""
    folder = Path(path)
    opening = _Opening(folder, model_class, dtype)
    try:
        weights = opening.weights()
    except Exception as error:  # the constructor of a model can fail in any way
        opening.warn_of_loading(error)
        opening.checkpoint.have_contents()
        return load_class(folder, opening.model_class, dtype)
    if weights.model.can_generate():
        weights.model.generation_config = _generation_config(folder)
    return weights.model


def model_with_values(folder: str | os.PathLike[str], model_class: Any = None, dtype: Any = None) -> Any:
    """The model as transformers loads it. Of weights that are codes it has the numbers; no other package is needed."""
    if read_format(read_config(Path(folder)).get("quantization_config")) is None:
        return load_model(folder, model_class, dtype)
    with quiet_transformers():
        return open_model(folder, model_class=model_class, dtype=dtype)


class _Opening:
    """A folder whose model is to be built over its files."""

    def __init__(self, folder: Path, model_class: Any, dtype: Any):
        self.folder, self.dtype = folder, dtype
        self.written = read_config(folder)
        self.checkpoint = Checkpoint(folder)
        self.model_class = find_class(folder, self.written, model_class)

    def weights(self) -> CheckpointWeights:
        weights = _bound(self.folder, self.checkpoint, self.written, self.model_class, self.dtype)
        lazy_weights.register(weights.model, weights)
        return weights

    def warn_of_loading(self, error: Exception) -> None:
        """Raises the error again where loading would not help."""
        if isinstance(error, ExportError) and error.code != "E0206":
            raise error
        warnings.warn(f"{self.folder}: the weights are loaded, because {reason_of(error)}", stacklevel=4)


def _generation_config(folder: Path) -> Any:
    """As from_pretrained finds it: older checkpoints have it among the settings of the model."""
    from transformers import GenerationConfig

    folder = folder if (folder / "generation_config.json").is_file() else base_of(folder)
    try:
        return GenerationConfig.from_pretrained(folder)
    except OSError:
        return generation_config_among_settings(folder)


def _bound(*of: Any) -> CheckpointWeights:
    with building_alone():
        try:
            return CheckpointWeights(*of)
        except (ExportError, NeedsValues):
            raise
        except Exception:  # a model that computes on meta when it is built may want a kernel that is not there
            if not deferred.load():
                raise
        return CheckpointWeights(*of)
