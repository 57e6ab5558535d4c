"""Tokens that stand for images, clips or sound in a text: as many as the model's encoder gives features."""

from __future__ import annotations

import functools
import inspect
import re
from typing import Any

import torch

from .facts import Facts
from .making import Making
from .trial import quietly

# For each kind: the input whose features take the places, names of the token, of those around it, of their number.
_KINDS = {
    "image": (
        ("pixel_values", "image_pixel_values"),
        ("image_token_id", "image_token_index", "img_token_id", "image_patch_id", "media_token_id"),
        ("vision_start_token_id", "image_start_token_id", "boi_token_id", "boi_token_index"),
        ("image_seq_length", "mm_tokens_per_image", "num_image_tokens", "num_query_tokens"),
    ),
    "video": (
        ("pixel_values_videos",),
        ("video_token_id", "video_token_index"),
        ("vision_start_token_id",),
        ("video_seq_length",),
    ),
    "audio": (
        ("input_features", "input_values"),
        ("audio_token_id", "audio_token_index"),
        ("audio_start_token_id", "audio_bos_token_id", "boa_token_id", "boa_token_index"),
        ("audio_seq_length", "audio_soft_tokens_per_image"),
    ),
}
_GUESS = 2  # a model that wants another number says so; one alone may mean that the model is to make room itself
_MARKS = {"image": 1, "video": 2, "audio": 3}
_COMPLAINT = re.compile(r"(\w+) features and \w+ tokens do not match.*?features:? (\d+)", re.IGNORECASE)


def kinds(facts: Facts) -> list[str]:
    """What the config has a placeholder for."""
    return [kind for kind in _KINDS if _token(facts, kind) is not None]


def _token(facts: Facts, kind: str) -> int | None:
    # It is never looked up in an embedding, so it may lie outside the vocabulary.
    return facts.token(*_KINDS[kind][1], outside=True)


def before(making: Making, ids: torch.Tensor) -> torch.Tensor:
    """The placeholders of each kind that is there, then the text."""
    batch, heads = len(ids), []
    for kind in kinds(making.facts):
        sources, _, starts, _ = _KINDS[kind]
        if not any(source in making.made for source in sources):
            continue
        start = making.facts.token(*starts)
        lead = [] if start is None else [start]
        head = [*lead, *[_token(making.facts, kind)] * _count(making, kind)]
        heads.append(torch.tensor(head, dtype=torch.int64).repeat(batch, 1))
    return torch.cat([*heads, ids], dim=1)


def marks(making: Making, ids: torch.Tensor) -> torch.Tensor:
    """0 for text, and a number for each kind of placeholder."""
    marked = torch.zeros_like(ids)
    for kind in kinds(making.facts):
        marked[ids == _token(making.facts, kind)] = _MARKS[kind]
    return marked


def told(error: Exception, making: Making) -> bool:
    """Whether the model has said how many features it has; they are then known for the next making."""
    found = _COMPLAINT.search(str(error))
    kind = found[1].lower() if found else ""
    if not found or kind not in _KINDS:
        return False
    each = int(found[2]) // making.sizes.batch
    width = making.facts.number(("hidden_size", "d_model"), "text") or 1
    if making.counts.get(kind) == each and each % width == 0:
        each //= width  # some models count numbers, not features
    if making.counts.get(kind) == each:
        return False
    making.counts[kind] = each
    return True


def _count(making: Making, kind: str) -> int:
    """Placeholders a row."""
    if kind not in making.counts:
        making.counts[kind] = _from_features(making, kind) or making.facts.number(_KINDS[kind][3]) or _GUESS
    return making.counts[kind]


def _from_features(making: Making, kind: str) -> int:
    """What the model's own method gives for what is made so far; 0 if it has none."""
    outer = making.subject.model
    for model in (outer, getattr(outer, "model", None)):
        method: Any = getattr(model, f"get_{kind}_features", None)
        taken = inspect.signature(method).parameters if method else {}
        values = {name: value for name, value in making.made.items() if name in taken}
        if values:
            features, error = quietly(making.subject, functools.partial(method, **values), values)
            return 0 if error else _rows(features) // making.sizes.batch
    return 0


def _rows(features: Any) -> int:
    pooled = getattr(features, "pooler_output", None)
    features = features if pooled is None else pooled
    if isinstance(features, torch.Tensor):
        return features.numel() // features.shape[-1]
    if isinstance(features, (list, tuple)):
        return sum(_rows(part) for part in features)
    hidden = getattr(features, "last_hidden_state", None)
    return 0 if hidden is None else _rows(hidden)
