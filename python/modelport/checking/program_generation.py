"""An ExecuTorch program that generates, held against its model: one text at a time, as far as its cache holds it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch

from ..running import open_model
from ..running.program_folder import open_program, room_in
from .generation import TOKENS, compare_generation, prompts_for
from .report import CheckReport

_READ = ("input_ids", "input_features", "input_values", "pixel_values")
Prompts = Iterable[tuple[str, Mapping[str, Any]]]


def check_program(
    program: Path,
    model: Any,
    inputs: Any,
    *,
    atol: float | None,
    name: str,
    config_in: Path | None = None,
    prompts: Prompts | None = None,
) -> CheckReport:
    """`inputs` are those of the model's forward, of which prompts are made by rule; `prompts` are taken as they are."""
    folder = open_program(program, config_in)
    made = one_text(prompts_for(model, inputs), room_in(folder)) if prompts is None else prompts
    return compare_generation(open_model(folder), model, made, atol, name)


def one_text(prompts: Prompts, room: int | None) -> Prompts:
    """The last text of each, without padding, if there is room for it and for what comes after."""
    for size, prompt in prompts:
        ids = prompt.get("input_ids")
        if ids is not None and room is not None and ids.shape[1] + TOKENS > room:
            continue
        rows = next((len(prompt[name]) for name in _READ if isinstance(prompt.get(name), torch.Tensor)), 1)
        text = {
            name: value[-1:] if isinstance(value, torch.Tensor) and value.dim() and len(value) == rows > 1 else value
            for name, value in prompt.items()
        }
        if "attention_mask" in text:
            text["attention_mask"] = torch.ones_like(text["attention_mask"])
        yield size, text
