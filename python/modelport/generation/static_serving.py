"""Whether a decoder that keeps its cache does what the model does: a prompt and the token after it are tried out."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch

from ..base.errors import ExportError
from .watching import Call

PROMPT = 5
Step = tuple[dict[str, torch.Tensor], torch.Tensor]  # what the decoder is given, and the last logits of the model


@torch.no_grad()
def steps_of_text(model: Any) -> list[Step]:
    """A prompt, and the token that `generate` adds to it."""
    ids = torch.arange(PROMPT, 2 * PROMPT)[None] % model.config.get_text_config(decoder=True).vocab_size
    settings = {"max_new_tokens": 2, "min_new_tokens": 2, "do_sample": False, "num_beams": 1}
    told = {"return_dict_in_generate": True, "output_logits": True}
    result = model.generate(ids, attention_mask=torch.ones_like(ids), **settings, **told)
    first, second = (logits[:, None] for logits in result.logits)
    return [({"input_ids": ids}, first), ({"input_ids": result.sequences[:, PROMPT : PROMPT + 1]}, second)]


@torch.no_grad()
def steps_of_calls(model: Any, calls: list[Call], given: Iterable[dict[str, torch.Tensor]]) -> list[Step]:
    """Calls that `generate` made, each with what the decoder is given for it."""
    want = [model(**copy.deepcopy(call)).logits[:, -1:] for call in calls]
    return list(zip(given, want, strict=False))


@torch.no_grad()
def serves(captured: Any, steps: list[Step]) -> bool:
    """Whether the program gives the logits of the model, one step after the other."""
    if not steps:  # else its weights would be read for nothing
        return True
    slots = {name: shape for name, _, shape in captured.program.inputs()}
    tokens = next(iter(slots))
    read, start = None, 0
    try:
        for given, want in steps:
            if "cache_position" not in slots:  # it reads the whole text again
                read = given[tokens] if read is None else torch.cat([read, given[tokens]], dim=1)
                given = given | {tokens: read}
            for piece in _pieces(given, tokens, whole=not slots[tokens][1].isdigit()):
                places = torch.arange(start, start + piece[tokens].shape[1])
                fed = piece | ({"cache_position": places} if "cache_position" in slots else {})
                got = captured.run(**fed)["logits"]
                start += len(places)
            if not _alike(got, want):
                return False
        return True
    except ExportError:  # sizes that it was not captured for
        return False
    finally:
        captured.reset()


def _pieces(given: dict[str, torch.Tensor], tokens: str, *, whole: bool) -> Iterator[dict[str, torch.Tensor]]:
    """All of it at once, or token by token: with what has a value a token, along the last axis."""
    length = given[tokens].shape[1]
    a_token = [n for n, v in given.items() if n != tokens and not v.is_floating_point() and v.shape[-1] == length]
    for at in [] if whole else range(length):
        yield given | {n: given[n][..., at : at + 1] for n in a_token} | {tokens: given[tokens][:, at : at + 1]}
    if whole:
        yield given


def _alike(got: torch.Tensor, want: torch.Tensor) -> bool:
    if got.shape != want.shape:
        return False
    got, want = got.float().flatten(), want.float().flatten()
    if torch.allclose(got, want, atol=1e-3, rtol=1e-3, equal_nan=True):
        return True
    # A recurrence that `generate` computes in chunks comes out a little different token by token.
    same_token = bool(got.argmax() == want.argmax())
    return same_token and bool(torch.nn.functional.cosine_similarity(got, want, dim=0) > 0.99999)


def captured_states(encoder: Any, read: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """What an encoder's program makes, under the name that the decoder has for it."""
    return {"encoder_hidden_states": encoder.run(**read)["last_hidden_state"]}
