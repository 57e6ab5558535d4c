"""Prompts that show everything: several rows, several tokens, one row padded on the left."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import torch

_ROWS = 2


def generous(model: Any, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs of `generate`, twice where they have one row, with padding in the mask. A mask of ones lets a model
    take short cuts that another prompt does not allow."""
    given = dict(inputs)
    batch = _rows(given)
    if batch == 1:
        given = {name: _repeated(value) for name, value in given.items()}
    ids = given.get("input_ids")
    if not isinstance(ids, torch.Tensor) or ids.dim() != 2:
        return given
    mask = given.get("attention_mask")
    if getattr(model.config, "is_encoder_decoder", False):
        # Without a mask in the example the files would have no input for one, and read padding as text.
        missing = mask is None and "attention_mask" in inspect.signature(model.forward).parameters
        return given | {"attention_mask": torch.ones_like(ids)} if missing else given
    if mask is None:
        mask = torch.ones_like(ids)
    if bool(mask.all()) and ids.shape[1] > 1:
        mask = mask.clone()
        mask[0, 0] = 0
    return given | {"attention_mask": mask}


def _rows(inputs: Mapping[str, Any]) -> int:
    for name in ("input_ids", "inputs_embeds", "input_features", "input_values", "pixel_values"):
        if isinstance(inputs.get(name), torch.Tensor):
            return int(inputs[name].shape[0])
    return _ROWS


def _repeated(value: Any) -> Any:
    """Twice along the first axis, which is that of the rows, of the images or of all their patches."""
    return torch.cat([value] * _ROWS) if isinstance(value, torch.Tensor) and value.dim() else value


# Arguments of forward that `generate` makes itself, step by step.
_MADE_BY_GENERATE = ("position_ids", "inputs_embeds", "past_key_values", "cache_params", "encoder_outputs", "use_cache")


def for_generate(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """What of the inputs of forward belongs to `generate`."""
    made = (*_MADE_BY_GENERATE, "labels")
    return {n: v for n, v in inputs.items() if n not in made and not n.startswith("decoder_") and v is not None}
