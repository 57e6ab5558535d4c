"""An export for generation held against its model: both generate, and every step and every encoder is compared."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any

import torch

from ..generation.prompts import for_generate, generous
from ..values.tolerance import Tolerance
from .encoders import encoders_compared
from .report import CheckReport, Row, Skipped
from .tolerance import row_of

TOKENS = 8
_SIZES = ("batch 1", "longer", "odd")


def compare_generation(
    loaded: Any, model: Any, prompts: Iterable[tuple[str, Mapping[str, Any]]], atol: float | None, name: str
) -> CheckReport:
    """`loaded` is what `modelport.load` gives; the prompts are inputs of `generate`, each with a word for it."""
    tolerance = Tolerance.of({p.dtype for p in model.parameters()}, atol)
    report = CheckReport(name, tolerance.atol)
    for size, prompt in prompts:
        try:
            with encoders_compared(loaded, model, prompt) as encoders:
                want = _generated(model, prompt)
        except Exception as error:  # a size that the model itself does not take
            report.skipped.append(Skipped(size, {}, f"the model fails on it: {' '.join(str(error).split())[:200]}"))
            continue
        rows, skipped = encoders(size, {"batch": want[0].shape[0]} | _prompt_length(prompt), tolerance)
        report.rows += rows
        report.skipped += skipped
        report.rows += _rows(size, prompt, lambda prompt=prompt: _generated(loaded, prompt), want, tolerance)
    return report


def prompts_for(model: Any, inputs: Any) -> Iterable[tuple[str, Mapping[str, Any]]]:
    """The example with a padded row, and the further sizes that rules make."""
    from ..inputs import further_sizes

    yield "example", generous(model, for_generate(inputs))
    try:
        further = further_sizes(inputs, model)
    except Exception:  # inputs made by hand, and models that take one size only
        return
    yield from ((size, for_generate(given)) for size, given in zip(_SIZES, further, strict=False))


def _generated(model: Any, prompt: Mapping[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
    """The new tokens, and the logits that each was chosen by: [rows, tokens], [rows, tokens, vocabulary]."""
    rng = torch.get_rng_state()
    settings = {"max_new_tokens": TOKENS, "min_new_tokens": TOKENS, "do_sample": False, "num_beams": 1}
    result = model.generate(**copy.deepcopy(dict(prompt)), **settings, return_dict_in_generate=True, output_logits=True)
    torch.set_rng_state(rng)
    return result.sequences[:, -len(result.logits) :], torch.stack(result.logits, dim=1).float()


def _rows(
    size: str, prompt: Mapping[str, Any], run: Any, want: tuple[torch.Tensor, torch.Tensor], tolerance: Tolerance
) -> list[Row]:
    batch, steps = want[0].shape
    axes = {"batch": batch, "tokens": steps} | _prompt_length(prompt)
    try:
        got = run()
    except Exception as error:  # onnxruntime stops in the middle
        inf = float("inf")
        return [Row(size, axes, "tokens", inf, inf, None, False, f"fails: {' '.join(str(error).split())}")]
    tokens = Row(size, axes, "tokens")
    same = got[0].shape == want[0].shape and (got[0] == want[0]).all(0)
    agreed = int(same.long().cumprod(0).sum()) if isinstance(same, torch.Tensor) else 0
    if agreed < steps:
        tokens.ok, tokens.what = False, f"differ from token {agreed + 1} on"
    compared = min(agreed + 1, steps)  # the step that parts had the same tokens before it
    return [row_of(Row(size, axes, "logits"), got[1][:, :compared], want[1][:, :compared], tolerance), tokens]


def _prompt_length(prompt: Mapping[str, Any]) -> dict[str, int]:
    ids = prompt.get("input_ids")
    return {} if ids is None else {"prompt": int(ids.shape[1])}
