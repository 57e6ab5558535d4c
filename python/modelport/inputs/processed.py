"""Example inputs by the checkpoint's own processor, tokenizer or feature extractor, from things that we ship."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

from ..running.prompt import Prompt, Reader, reads_media, reads_text
from ..weights.loading import quiet_transformers

TEXTS = ("The quick brown fox jumps over the lazy dog.", "The lazy dog jumps over the quick brown fox.")
_SIDES = (160, 224)  # pixels, down and across
_SECONDS, _RATE = 1.0, 16000
_PICTURES = ("pixel_values", "pixel_values_videos", "images", "image_grid_thw")
_SOUNDS = ("input_features", "input_values", "audio_values")


def takes_media(parameters: Iterable[str]) -> bool:
    return any(name in parameters for name in (*_PICTURES, *_SOUNDS))


def can_process(folder: Path) -> bool:
    return reads_media(folder) or reads_text(folder)


def processed_inputs(folder: Path, parameters: Iterable[str], *, batch: int, trust: bool) -> dict[str, Any]:
    """What the processor makes of a picture, a sound and a text, as far as the model takes them. Raises whatever a
    processor raises."""
    known = set(parameters)
    text = "input_ids" in known
    with quiet_transformers():
        reader = Reader(folder, trust_remote_code=trust, needs_tokenizer=text)
        rows = [dict(reader.inputs(_prompt(number, known, text))) for number in range(batch)]
    return {name: _joined([row[name] for row in rows]) for name in rows[0] if name in known}


def _prompt(number: int, known: set[str], text: bool) -> Prompt:
    """Another one for each row, and all of one size."""
    pictures = [picture(number)] if any(name in known for name in _PICTURES) else []
    sounds = [(sound(number), _RATE)] if any(name in known for name in _SOUNDS) else []
    return Prompt(TEXTS[number % len(TEXTS)] if text else None, pictures, sounds, raw=False)


def _joined(values: list[Any]) -> Any:
    """Along the first axis, which is that of the rows, of the images or of all their patches."""
    if not all(isinstance(value, torch.Tensor) and value.dim() for value in values):
        return values[0]
    if len({value.shape[1:] for value in values}) > 1:  # as where two texts have different lengths
        values = [values[0]] * len(values)
    return torch.cat(values)


def picture(number: int) -> Any:
    """Stripes and a bright disc, in other colours and places for each number."""
    from PIL import Image

    rows, columns = torch.meshgrid(*(torch.linspace(0, 1, side) for side in _SIDES), indexing="ij")
    stripes = (0.5 + 0.5 * torch.sin(40 * (rows + (number + 1) * columns))) * 160
    disc = ((rows - 0.5) ** 2 + (columns - 0.3 - 0.2 * (number % 3)) ** 2) < 0.04
    shades = [stripes, 200 * rows, 220 * columns]
    shades = [
        torch.where(disc, 250.0 - 30 * i, shade) for i, shade in enumerate(shades[number % 3 :] + shades[: number % 3])
    ]
    return Image.fromarray(torch.stack(shades, -1).to(torch.uint8).numpy())


def sound(number: int) -> Any:
    """A chord that fades, over a little noise."""
    time = torch.arange(int(_SECONDS * _RATE)) / _RATE
    notes = [torch.sin(2 * math.pi * pitch * (1 + number / 4) * time) for pitch in (220.0, 330.0, 495.0)]
    noise = torch.randn(len(time), generator=torch.Generator().manual_seed(number))
    return (torch.stack(notes).mean(0) * torch.exp(-2 * time) + 0.01 * noise).numpy()
