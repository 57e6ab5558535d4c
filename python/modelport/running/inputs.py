"""What a file is fed with: what the caller gave under the file's names for it, and what follows from that."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import torch

from ..artifacts.artifact import ALL_LOGITS
from ..base.errors import problem
from ..runtimes.runner import Slot

# Inputs of which an encoder-decoder has two: the decoder's are called so in its file, and decoder_... in Python.
_OF_BOTH_SIDES = ("input_ids", "attention_mask", "position_ids", "inputs_embeds", "token_type_ids", "head_mask")


class Call(NamedTuple):
    """One call of a decoder: what was given, and its sizes."""

    given: Mapping[str, Any]
    batch: int
    tokens: int
    past: int


def call_of(given: Mapping[str, Any], past: int, encoder_decoder: bool) -> Call:
    """The sizes are those of the tokens, by whatever name they come."""
    side = "decoder_" if encoder_decoder else ""
    for name in (f"{side}inputs_embeds", f"{side}input_ids"):
        tokens = given.get(name)
        if tokens is not None:
            return Call(given, tokens.shape[0], tokens.shape[1], past)
    raise problem("E0301", f"there are no {side}input_ids to go on from", f"pass {side}input_ids=...")


def decoder_feeds(slots: Iterable[Slot], call: Call, encoder_decoder: bool) -> dict[str, torch.Tensor]:
    """The decoder's inputs except the cache."""
    feeds: dict[str, torch.Tensor] = {}
    for slot in slots:
        value = _given(slot.name, call.given, encoder_decoder)
        if slot.name == ALL_LOGITS:
            if _wants_all_logits(call, feeds):
                feeds[slot.name] = torch.tensor(True)
            continue
        if value is None and slot.name in _MADE:
            value = _MADE[slot.name](slot, call, feeds)
        if value is None:
            raise missing(slot, slots)
        tensor = fitted(slot, value, call.batch)
        feeds[slot.name] = _last_kinds(slot, tensor) if slot.name == "position_ids" else tensor
    _check_mask(feeds, call)
    return feeds


def _wants_all_logits(call: Call, feeds: Mapping[str, torch.Tensor]) -> bool:
    """`generate` says that it reads those of the last column only. In rows with padding behind them that is no token:
    files give those of the last token."""
    keep = call.given.get("logits_to_keep")
    if call.tokens == 1 or not isinstance(keep, int) or keep != 1:
        return call.tokens > 1
    mask = feeds.get("attention_mask")
    return mask is not None and not bool(mask[:, -1].all())


def _given(name: str, given: Mapping[str, Any], encoder_decoder: bool) -> Any:
    if not encoder_decoder:
        return given.get(name)
    if name in _OF_BOTH_SIDES:
        return given.get(f"decoder_{name}")
    if name == "encoder_attention_mask":  # an encoder that gives fewer states than it takes may say which
        said = getattr(given.get("encoder_outputs"), "attention_mask", None)
        return given.get("attention_mask") if said is None else said
    return given.get(name)


def name_in_python(name: str, beside_encoder: bool) -> str:
    """What callers call an input of a decoder's file."""
    if beside_encoder and name in _OF_BOTH_SIDES:
        return f"decoder_{name}"
    return "attention_mask" if name == "encoder_attention_mask" else name


def fitted(slot: Slot, value: Any, batch: int | None = None) -> torch.Tensor:
    """As the file takes it: its type, and a row for each of the batch where one row stands for all."""
    tensor = value if isinstance(value, torch.Tensor) else torch.as_tensor(value)
    if tensor.dtype != slot.dtype:
        if tensor.is_floating_point() and not slot.dtype.is_floating_point:
            raise problem(
                "E0301",
                f"{slot.name} is {str(tensor.dtype).removeprefix('torch.')}, and the file takes "
                f"{str(slot.dtype).removeprefix('torch.')}",
                f"convert it: {slot.name}.to({slot.dtype})",
            )
        tensor = tensor.to(slot.dtype)
    _refuse_negative_tokens(slot, tensor)
    if batch is not None and tensor.dim() == 2 and tensor.shape[0] == 1 < batch and isinstance(slot.shape[0], str):
        tensor = tensor.expand(batch, -1)
    return tensor


def _refuse_negative_tokens(slot: Slot, tensor: torch.Tensor) -> None:
    """PyTorch refuses these; ONNX counts them from the end of the vocabulary, and so would give other values."""
    if slot.name.endswith("input_ids") and tensor.numel() and int(tensor.min()) < 0:
        raise problem(
            "E0301",
            f"{slot.name} has the token {int(tensor.min())}, and tokens are numbers from 0 on",
            "give padding the id of a token: tokenizer.pad_token_id",
        )


def _last_kinds(slot: Slot, positions: torch.Tensor) -> torch.Tensor:
    """transformers has positions in the text before those in time, height and width; some files take these three."""
    kinds = slot.shape[0]
    several = positions.dim() == 3 and isinstance(kinds, int) and kinds < positions.shape[0]
    return positions[-int(kinds) :] if several else positions


def missing(slot: Slot, slots: Iterable[Slot]) -> Exception:
    return problem("E0301", f"the input {slot.name} is missing", f"it takes: {', '.join(map(str, slots))}")


def _check_mask(feeds: Mapping[str, torch.Tensor], call: Call) -> None:
    mask = feeds.get("attention_mask")
    if mask is not None and mask.dim() == 2 and mask.shape[1] != call.past + call.tokens:
        raise problem(
            "E0301",
            f"attention_mask covers {mask.shape[1]} tokens; there are {call.past} before and {call.tokens} new ones",
            "pass a mask for all of them, or none",
        )


# --- what is made where nobody gave it --------------------------------------------------------------------------------


def _mask(_slot: Slot, call: Call, _feeds: Mapping[str, torch.Tensor]) -> torch.Tensor:
    return torch.ones(call.batch, call.past + call.tokens, dtype=torch.int64)


def _positions(slot: Slot, call: Call, feeds: Mapping[str, torch.Tensor]) -> torch.Tensor:
    """Tokens that are padding do not count, and stand at 0."""
    mask = feeds.get("attention_mask", call.given.get("attention_mask"))
    if mask is None or mask.dim() != 2:
        row = torch.arange(call.past, call.past + call.tokens)
        positions = row.expand(call.batch, -1)
    else:
        positions = (mask.long().cumsum(-1) - 1).masked_fill(mask == 0, 0)[:, -call.tokens :]
    for size in reversed(slot.shape[:-2]):  # several kinds of positions, which are the same for text
        positions = positions.expand(size if isinstance(size, int) else 1, *positions.shape)
    return positions


def _cache_positions(_slot: Slot, call: Call, _feeds: Mapping[str, torch.Tensor]) -> torch.Tensor:
    return torch.arange(call.past, call.past + call.tokens)


def _zeros_a_token(_slot: Slot, call: Call, _feeds: Mapping[str, torch.Tensor]) -> torch.Tensor:
    return torch.zeros(call.batch, call.tokens, dtype=torch.int64)


def _logits_to_keep(slot: Slot, call: Call, _feeds: Mapping[str, torch.Tensor]) -> torch.Tensor:
    """0 keeps all of them, as in transformers."""
    return torch.full([1] * len(slot.shape), call.given.get("logits_to_keep") or 0)


def _uses_cache(_slot: Slot, call: Call, _feeds: Mapping[str, torch.Tensor]) -> torch.Tensor:
    return torch.tensor([call.past > 0])


def _encoder_states(_slot: Slot, call: Call, _feeds: Mapping[str, torch.Tensor]) -> torch.Tensor | None:
    outputs = call.given.get("encoder_outputs")
    return None if outputs is None else outputs[0]


def _encoder_mask(_slot: Slot, call: Call, feeds: Mapping[str, torch.Tensor]) -> torch.Tensor | None:
    states = feeds.get("encoder_hidden_states", _encoder_states(_slot, call, feeds))
    return None if states is None else torch.ones(states.shape[:2], dtype=torch.int64)


_MADE: dict[str, Callable[[Slot, Call, Mapping[str, torch.Tensor]], torch.Tensor | None]] = {
    "attention_mask": _mask,
    "decoder_attention_mask": _mask,
    "position_ids": _positions,
    "cache_position": _cache_positions,
    "token_type_ids": _zeros_a_token,
    "mm_token_type_ids": _zeros_a_token,
    "logits_to_keep": _logits_to_keep,
    "num_logits_to_keep": _logits_to_keep,
    "use_cache_branch": _uses_cache,
    "encoder_hidden_states": _encoder_states,
    "encoder_attention_mask": _encoder_mask,
}
