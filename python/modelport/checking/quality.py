"""Weights in few bits held against those of the model: perplexity of a text, best guesses, and logits."""

from __future__ import annotations

import dataclasses
import math
import weakref
from pathlib import Path
from typing import Any

import torch

from ..base.errors import ExportError, problem
from ..models.context_length import context_length

MAX_GROWTH = 25.0  # percent
MIN_COSINE = 0.98  # of the outputs of a model that does not generate
_ROWS, _TOKENS, _LEAST = 8, 64, 8


@dataclasses.dataclass
class QualityReport:
    """`ok` says whether perplexity grew by no more than is allowed."""

    artifact: str
    text: str  # which it was
    tokens: int
    perplexity: float
    perplexity_of_model: float
    same_guess: float  # share of tokens after which both expect the same one
    logit_error: float  # root of the mean square, relative to that of the logits around their mean
    max_growth: float = MAX_GROWTH

    @property
    def growth(self) -> float:
        """Of perplexity, in percent."""
        return 100 * (self.perplexity / self.perplexity_of_model - 1)

    @property
    def ok(self) -> bool:
        return math.isfinite(self.growth) and self.growth <= self.max_growth

    def __bool__(self) -> bool:
        return self.ok

    @property
    def bound(self) -> str:
        """What was allowed."""
        return f"{self.max_growth:g} % more perplexity allowed"

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self) | {"growth": self.growth, "ok": self.ok}

    def __str__(self) -> str:
        own = f"{self.perplexity_of_model:.4g} of the model ({self.growth:+.2f} %)"
        return (
            f"perplexity {self.perplexity:.4g} against {own} on {self.tokens} tokens of {self.text}\n"
            f"best guess kept in {100 * self.same_guess:.4g} %, logits differ by {100 * self.logit_error:.3g} %"
        )

    def error(self) -> ExportError:
        return problem(
            "E0401",
            f"{self.artifact}: perplexity is {self.perplexity:.4g}, and {self.perplexity_of_model:.4g} in the model: "
            f"{self.growth:.1f} % more, where {self.max_growth:g} % are allowed",
            "--dtype int8",
            "smaller blocks, or zero points: --block-size 16, --asymmetric",
            f"allow it: --max-perplexity-growth {math.ceil(self.growth) if math.isfinite(self.growth) else 1000}",
        )


@dataclasses.dataclass(frozen=True)
class QualityAsked:
    """What a user may say of it: a file to read, without which the model writes a text of its own, and the floor."""

    text: str | None = None
    max_growth: float | None = None
    min_cosine: float | None = None


def compare_quality(
    folder: Path, model: Any, name: str, asked: QualityAsked | None = None, dtype: str | None = None
) -> QualityReport:
    """`folder` is the export; `dtype` says which, where it has files of several types."""
    from ..running import load

    asked = asked or QualityAsked()
    loaded = load(folder, dtype=dtype)
    ids, words = _own_text(model) if asked.text is None else _read(folder, model, Path(asked.text))
    with torch.no_grad():
        want = model(input_ids=ids).logits.float()
        got = loaded(input_ids=ids).logits.float()
    noise = (got - want).square().mean()
    centred = want - want.mean(-1, keepdim=True)
    return QualityReport(
        artifact=name,
        text=words,
        tokens=int(ids[:, 1:].numel()),
        perplexity=_perplexity(got, ids),
        perplexity_of_model=_perplexity(want, ids),
        same_guess=float((got.argmax(-1) == want.argmax(-1)).float().mean()),
        logit_error=float((noise / centred.square().mean()).sqrt()),
        max_growth=MAX_GROWTH if asked.max_growth is None else asked.max_growth,
    )


def _perplexity(logits: torch.Tensor, ids: torch.Tensor) -> float:
    flat = logits[:, :-1].reshape(-1, logits.shape[-1])
    return float(torch.nn.functional.cross_entropy(flat, ids[:, 1:].reshape(-1)).exp())


_drawn: weakref.WeakKeyDictionary[Any, torch.Tensor] = weakref.WeakKeyDictionary()


def _own_text(model: Any) -> tuple[torch.Tensor, str]:
    """Drawn by the model itself, always the same; once for all types that are held against it."""
    if model not in _drawn:
        _drawn[model] = _draw(model)
    return _drawn[model], "a text that the model drew"


def _draw(model: Any) -> torch.Tensor:
    longest = context_length(model.config) or _TOKENS
    tokens = max(min(_TOKENS, longest - 1), _LEAST)
    start = model.generation_config.bos_token_id
    rng = torch.get_rng_state()
    torch.manual_seed(0)
    settings = {"do_sample": True, "top_k": 0, "top_p": 1.0, "temperature": 1.0, "num_beams": 1}
    ids = model.generate(
        torch.full((_ROWS, 1), 1 if start is None else start),
        attention_mask=torch.ones(_ROWS, 1, dtype=torch.int64),
        max_new_tokens=tokens - 1,
        min_new_tokens=tokens - 1,
        **settings,
    )
    torch.set_rng_state(rng)
    return ids


def _read(folder: Path, model: Any, path: Path) -> tuple[torch.Tensor, str]:
    from transformers import AutoTokenizer

    try:
        text = path.read_text(encoding="utf-8")
        tokenizer = AutoTokenizer.from_pretrained(folder)
    except (OSError, ValueError) as error:
        raise problem("E0101", f"{path}: {error}", "name a text file, beside an export with its tokenizer") from error
    ids = tokenizer(text, return_tensors="pt").input_ids
    longest = context_length(model.config) or 512
    length = min(longest, 512, ids.shape[1])
    rows = ids.shape[1] // length
    if length < _LEAST:
        raise problem("E0101", f"{path} has {ids.shape[1]} tokens, and {_LEAST} are needed", "name a longer text")
    return ids[:, : rows * length].reshape(rows, length), path.name
