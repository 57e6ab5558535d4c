"""Inputs that are tokens: ids, masks with padding, token types, ids of a decoder, boxes on a page."""

from __future__ import annotations

import torch

from . import placeholders
from .making import Making, Options, Subject

_TOWERS = ("pixel_values", "pixel_values_videos", "input_features", "input_values")
_PLAIN_FROM = 5  # below are special tokens in most vocabularies, whatever the config says


def options(subject: Subject) -> Options:
    found: Options = {}
    names, facts = subject.parameters, subject.facts
    tower = any(name in names for name in _TOWERS)
    if "input_ids" in names and tower and not placeholders.kinds(facts):
        found["texts"] = ["more", "several", "same"]
    if "inputs" in names:
        found["length"] = ["free", "longest"]
    if subject.cls.__name__.endswith("ForSequenceClassification") and "decoder_input_ids" in names:
        found["end"] = [False, True]  # some heads look at the token that ends the text
    return found


def input_ids(making: Making) -> torch.Tensor | None:
    """Tokens of text, after the placeholders of what else the model reads."""
    if "inputs" in making.made:  # another name for the same
        return None
    ids = plain_ids(making, texts(making), length(making), making.facts.vocabulary())
    end = making.facts.token("eos_token_id")
    if making.plan.get("end") and end is not None:
        ids[:, -1] = end
    return placeholders.before(making, ids)


def inputs(making: Making) -> torch.Tensor:
    seq = making.facts.number(("max_position_embeddings",)) if making.plan.get("length") == "longest" else None
    return plain_ids(making, making.sizes.batch, seq or length(making), making.facts.vocabulary())


def qformer_input_ids(making: Making) -> torch.Tensor:
    """The text once more, for a part that looks at images with it in mind."""
    sizes = [getattr(part, "vocab_size", None) for part in making.facts.parts("text")]
    return plain_ids(making, texts(making), length(making), min(size for size in sizes if size))


def decoder_input_ids(making: Making) -> torch.Tensor | None:
    decodes = any(getattr(part, "is_encoder_decoder", False) for part in making.facts.parts("text"))
    if not decodes and not making.subject.parameters["decoder_input_ids"]:
        return None
    if making.plan.get("end"):  # the head looks for the end of the text among what the decoder reads: the same text
        return None
    return plain_ids(making, making.sizes.batch, making.sizes.target, making.facts.vocabulary(decoder=True))


def attention_mask(making: Making) -> torch.Tensor | None:
    """Row i hides i+1 tokens of text (at most half of them), the last row none."""
    ids = making.made.get("input_ids", making.made.get("inputs"))
    if ids is None:
        return None
    batch, seq = ids.shape
    left = making.subject.cls.can_generate() and not placeholders.kinds(making.facts)
    if "decoder_input_ids" in making.made:
        left = False
    return padding(batch, seq, min(seq, length(making)), left=left)


def token_type_ids(making: Making) -> torch.Tensor | None:
    """The kinds of tokens: first or second sentence, or text and image."""
    ids = making.made.get("input_ids")
    if ids is None:
        return None
    if placeholders.kinds(making.facts):
        return placeholders.marks(making, ids).clamp(max=1)
    if (making.facts.number(("type_vocab_size",), "text") or 0) < 2:
        return None
    return (torch.arange(ids.shape[1]) > ids.shape[1] // 2).to(torch.int64).repeat(ids.shape[0], 1)


def mm_token_type_ids(making: Making) -> torch.Tensor | None:
    ids = making.made.get("input_ids")
    return None if ids is None else placeholders.marks(making, ids)


def bbox(making: Making) -> torch.Tensor:
    """A box on the page for each token: left, top, right, bottom."""
    batch, seq = making.made["input_ids"].shape
    half = min(making.facts.number(("max_2d_position_embeddings",), "text") or 1000, 1000) // 2
    corners = making.integers(0, half, batch, seq, 2)
    return torch.cat([corners, corners + making.integers(1, half, batch, seq, 2)], dim=-1)


def texts(making: Making) -> int:
    """How many: as many as images, or a number of their own where the model takes them apart."""
    batch, relation = making.sizes.batch, making.plan.get("texts", "same")
    return {"more": batch + 1, "several": 3 * batch, "same": batch}[relation]


def length(making: Making) -> int:
    longest = making.facts.longest()
    return min(making.sizes.sequence, longest) if longest else making.sizes.sequence


def plain_ids(making: Making, batch: int, seq: int, vocabulary: int) -> torch.Tensor:
    """Ids of the vocabulary that have no meaning of their own."""
    allowed = torch.ones(vocabulary, dtype=torch.bool)
    allowed[:_PLAIN_FROM] = False
    allowed[[id for id in making.facts.special_tokens() if 0 <= id < vocabulary]] = False
    plain = allowed.nonzero().flatten() if allowed.any() else torch.arange(vocabulary)
    return plain[making.integers(0, len(plain), batch, seq)]


def padding(batch: int, seq: int, text: int, *, left: bool) -> torch.Tensor:
    mask = torch.ones(batch, seq, dtype=torch.int64)
    for i in range(max(batch - 1, 1)):
        hidden = min(i + 1, text // 2)
        if left:
            mask[i, :hidden] = 0
        else:
            mask[i, seq - hidden :] = 0
    return mask


RULES = {
    "inputs": inputs,
    "input_ids": input_ids,
    "qformer_input_ids": qformer_input_ids,
    "decoder_input_ids": decoder_input_ids,
    "attention_mask": attention_mask,
    "token_type_ids": token_type_ids,
    "mm_token_type_ids": mm_token_type_ids,
    "bbox": bbox,
}
