"""`capture(model, inputs)`: run the model once on example inputs and get the graph of what it computed."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import torch

from ..capturing.captured import Captured
from ..capturing.model import capture_model
from ..hub.folder import checkpoint_folder
from .dtype import capture_in_dtype
from .folder import capture_folder


def capture(
    model: torch.nn.Module | Callable[..., Any] | str | os.PathLike[str],
    inputs: Mapping[str, Any] | tuple[Any, ...],
    *,
    dynamic: bool = False,
    dynamic_shapes: Any = None,
    test_guards: bool = True,
    grow_batch: bool = True,
    join_lists: bool = True,
    model_class: Any = None,
    dtype: torch.dtype | None = None,
    revision: str | None = None,
) -> Captured:
    """Captures a model, or any callable on tensors, as a graph that computes the same.

    `inputs` are keyword arguments (a mapping) or positional ones (a tuple); nested structures and caches are fine.
    `dynamic=True` makes every axis longer than 1 symbolic, and the batch of an example of one row, which is captured
    with a second row beside it where the model takes two (`grow_batch=False` leaves it as it is); `dynamic_shapes` says
    it axis by axis, in the forms that `torch.export` takes, with plain strings as names too. With `test_guards`, a
    condition that the model asked of a size is tried out at a size on its other side and dropped where it makes no
    difference. Where the model gives a list with a tensor for each item and the number of items is open, the graph
    gives the tensors of all in one, and `captured.run` the model's list; `join_lists=False` pins how many there are.

    A path names a checkpoint folder: the model is captured without reading its weights. `model_class` (a class or its
    name in transformers) is for a folder whose config.json names none, or another than the one wanted. A name of the
    hub, "org/name", does as well, at the `revision` that is asked for: only the headers of its weights are fetched,
    until their values are used.

    `dtype` captures the model as if it had been loaded in that type, of which the floating inputs are, too; its weights
    stay as they are, and are converted when they are written or used.
    """
    options = {
        "dynamic": dynamic,
        "dynamic_shapes": dynamic_shapes,
        "test_guards": test_guards,
        "grow_batch": grow_batch,
        "join_lists": join_lists,
    }
    if isinstance(model, str | os.PathLike):
        folder = checkpoint_folder(model, revision=revision, headers=True)
        return capture_folder(folder, inputs, model_class=model_class, dtype=dtype, **options)
    if dtype is not None and isinstance(model, torch.nn.Module):
        return capture_in_dtype(model, inputs, dtype, **options)
    return capture_model(model, inputs, **options)
