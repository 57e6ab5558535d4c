"""One part of a generative model: a module with an example call."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import torch


@dataclasses.dataclass
class Part:
    """A module with an example call; `dynamic_shapes` None lets every axis be dynamic."""

    module: torch.nn.Module
    inputs: dict[str, Any]
    dynamic_shapes: Any = None
    # Whether the captured program serves every call that it must.
    serves: Callable[[Any], bool] | None = None
    gives_logits: bool = False
    # Tries the capture at other sizes, in place of what a capture does by itself; is given the inputs, too.
    trials: Callable[[Any, Mapping[str, Any]], None] | None = None


Export = Callable[[str, Part], Any]
