"""What a model that is called once says in words: likely words for a mask, labels, things with their places in a
picture. What it is follows from its results."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import torch

from ..base.errors import problem

_SHOWN = 5  # likeliest words or labels
_LIKELY = 0.5  # things of a picture that are more likely than not; at least one is told


@dataclasses.dataclass(frozen=True)
class Answer:
    score: float
    text: str
    box: list[float] | None = None  # left, top, right, bottom, in pixels of the picture

    def __str__(self) -> str:
        place = "" if self.box is None else "  at " + ", ".join(f"{edge:.0f}" for edge in self.box)
        return f"{self.score:.3f}  {self.text}{place}"


def can_answer(takes: list[str], gives: list[str]) -> bool:
    """Logits of what is read; those of a text that is to be written belong to models that generate."""
    is_called_once = "decoder_input_ids" not in takes and not any(name.startswith("past_") for name in takes)
    return "logits" in gives and is_called_once


@dataclasses.dataclass(frozen=True)
class Question:
    """What was read, by whom, and the model's configuration, which names its labels."""

    reader: Any
    inputs: Mapping[str, Any]
    images: list[Any]
    config: Mapping[str, Any]


def answers(results: Any, question: Question) -> list[Answer]:
    """Those of one row."""
    logits, tokenizer = results.logits.float(), question.reader.tokenizer
    if "pred_boxes" in results and question.images:
        return _things(results, question)
    if logits.dim() == 2:
        several = question.config.get("problem_type") == "multi_label_classification"
        scores = logits[0].sigmoid() if several else logits[0].softmax(0)
        return _likeliest(scores, lambda number: label(question.config, number))
    if logits.dim() == 3 and getattr(tokenizer, "mask_token_id", None) is not None:
        return _words(logits[0], tokenizer, question.inputs["input_ids"][0])
    sizes = list(logits.shape)
    raise problem(
        "E0311",
        f"the model gives logits of shape {sizes}, and nothing says how they become words, labels or boxes",
        "call it in Python: modelport.load(folder)(**inputs)",
    )


def label(config: Mapping[str, Any], number: int) -> str:
    """As config.json names it."""
    names = config.get("id2label")
    found = names.get(str(number)) if isinstance(names, dict) else None
    return found if isinstance(found, str) else f"LABEL_{number}"


def _likeliest(scores: torch.Tensor, name: Any) -> list[Answer]:
    best = scores.topk(min(_SHOWN, len(scores)))
    return [Answer(score, name(i)) for score, i in zip(best.values.tolist(), best.indices.tolist(), strict=True)]


def _words(logits: torch.Tensor, tokenizer: Any, ids: torch.Tensor) -> list[Answer]:
    places = (ids == tokenizer.mask_token_id).nonzero()[:, 0].tolist()
    if not places:
        mask = tokenizer.mask_token
        what = f"the prompt has no {mask}, the place of the word that is to be found"
        raise problem("E0312", what, f'modelport run FOLDER "Paris is the {mask} of France."')
    return [word for place in places for word in _likeliest(logits[place].softmax(0), lambda i: tokenizer.decode([i]))]


def _things(results: Any, question: Question) -> list[Answer]:
    """The processor knows what the model means by boxes and which of its labels stands for nothing."""
    size = [(question.images[0].height, question.images[0].width)]
    found = question.reader.image_processor.post_process_object_detection(results, threshold=0.0, target_sizes=size)[0]
    rows = sorted(zip(found["scores"].tolist(), found["labels"].tolist(), found["boxes"].tolist(), strict=True))[::-1]
    told = [row for row in rows if row[0] >= _LIKELY] or rows[:1]
    return [Answer(score, label(question.config, kind), box) for score, kind, box in told]
