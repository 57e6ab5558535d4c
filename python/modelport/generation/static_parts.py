"""What stands before a decoder that keeps its cache: encoders, and the embedding of words."""

from __future__ import annotations

from typing import Any

import torch

from .cutting import Cut
from .encoders import encoder_name, encoder_part
from .part import Part
from .roles import Roles, roles_in, stretched


def embeddings_in_a_row(cut: Cut) -> Roles | None:
    """The roles of a model whose decoder gets embeddings from its encoders and nothing else that features decide. Masks
    that hide nothing decide nothing."""
    roles = roles_in(cut)
    if roles is None:
        return None
    reached = cut.reached(cut.call, cut.as_it_was())
    more = [name for name in roles.carried if name != "inputs_embeds" and not _hides_nothing(name, reached[name])]
    return None if more else roles


def _hides_nothing(name: str, mask: Any) -> bool:
    return name == "attention_mask" and isinstance(mask, torch.Tensor) and mask.dim() == 2 and bool(mask.all())


class EncoderStates(torch.nn.Module):
    """The encoder of an encoder-decoder, for its states alone."""

    def __init__(self, encoder: Any):
        super().__init__()
        self.model = encoder

    def forward(self, **read: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"last_hidden_state": self.model(**read)[0]}


class Rows(torch.nn.Module):
    """An encoder of pictures or sound whose features come as embeddings of one text: [1, rows, width]."""

    def __init__(self, encoder: Any):
        super().__init__()
        self.model = encoder

    def forward(self, **given: torch.Tensor) -> dict[str, torch.Tensor]:
        return {name: value.reshape(1, -1, value.shape[-1]) for name, value in self.model(**given).items()}


class Words(torch.nn.Module):
    """Tokens as the decoder takes them, none of which stands for a picture or a sound."""

    def __init__(self, cut: Cut, roles: Roles):
        super().__init__()
        self.model, self.config = cut.whole, cut.whole.config
        self._cut, self._roles = cut, roles

    def forward(self, input_ids: torch.Tensor) -> dict[str, torch.Tensor]:
        text = {name: stretched(self._cut.call[name], input_ids) for name in self._roles.text}
        call = self._roles.without_media(self._cut.call) | text | {"input_ids": input_ids}
        return {"inputs_embeds": self._cut.of_words(call)["inputs_embeds"]}


def media_parts(cut: Cut, roles: Roles) -> dict[str, Part]:
    """Encoders and `token_embedding`."""
    parts = {}
    for modality in cut.modalities:
        part = encoder_part(cut, roles.media, modality)
        parts[encoder_name(modality)] = Part(Rows(part.module).eval(), part.inputs)
    words = torch.full_like(cut.call["input_ids"][:, :3], roles.word)
    return parts | {"token_embedding": Part(Words(cut, roles).eval(), {"input_ids": words})}
