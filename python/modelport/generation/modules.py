"""The parts of a model that sees or hears, as modules: they run the model's own code up to a cut or from it on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from .cutting import Cut
from .roles import Roles, put_in_place, stretched
from .watching import Call


class Encoder(torch.nn.Module):
    """Pictures or sound to features."""

    def __init__(self, cut: Cut, modality: str):
        super().__init__()
        self.model, self.config = cut.whole, cut.whole.config
        self.cut, self.modality = cut, modality

    def forward(self, **given: torch.Tensor) -> dict[str, torch.Tensor]:
        return self.cut.made(self.modality, self.cut.call | given)


class Embedding(torch.nn.Module):
    """Tokens and features to what the language model takes. Without features, which is every step after the prompt, it
    gives what the model gives for text alone."""

    def __init__(self, cut: Cut, roles: Roles):
        super().__init__()
        self.model, self.config = cut.whole, cut.whole.config
        self.cut, self.roles = cut, roles

    def forward(self, input_ids: torch.Tensor, **given: torch.Tensor) -> dict[str, Any]:
        features = {name: given.pop(name) for name in self.roles.example}
        rows = sum(value.shape[0] for value in features.values())
        some = torch.full((1,), rows, device=input_ids.device) > 0
        text = {name: stretched(self.cut.call[name], input_ids) for name in self.roles.text} | given
        # A token that stands for a piece of an image may come up without one: it is then a word like others.
        seen = text | {"input_ids": torch.where(some, input_ids, self.roles.word)}
        words = self.of_words(text | {"input_ids": input_ids})
        merged = self._placed(seen, features) if self.roles.place is not None else self._merged(seen, features)
        return {name: _either(some, merged[name], words.get(name)) for name in self.roles.carried}

    def _merged(self, text: Mapping[str, torch.Tensor], features: Mapping[str, torch.Tensor]) -> Call:
        return self.cut.reached(self.cut.call | dict(text), self.cut.given(features))

    def _placed(self, text: Mapping[str, torch.Tensor], features: Mapping[str, torch.Tensor]) -> Call:
        ((_, rows),) = features.items()
        return {"inputs_embeds": put_in_place(text["input_ids"], self.of_words(text), self.roles.place, rows)}

    def of_words(self, text: Mapping[str, torch.Tensor]) -> Call:
        return self.cut.of_words(self.roles.without_media(self.cut.call) | dict(text))


def _either(some: torch.Tensor, merged: Any, words: Any) -> Any:
    return torch.where(some, merged, words) if isinstance(words, torch.Tensor) else merged


class Decoder(torch.nn.Module):
    """Embeddings to logits, with a cache. Some models do otherwise where there are pictures: `with_media` gives them
    those of the example, of which no rows are left."""

    def __init__(self, cut: Cut, roles: Roles, with_media: bool):
        super().__init__()
        self.model, self.config = cut.stepping, cut.stepping.config
        self.cut, self.roles = cut, roles
        self.media = {name: cut.call[name] for name in roles.media if with_media}
        self.no_rows = cut.given({name: value[:0] for name, value in roles.example.items()})

    def forward(self, inputs_embeds: torch.Tensor, **given: Any) -> dict[str, Any]:
        carried = {name: given.pop(name) for name in self.roles.carried if name in given}
        words = torch.full(inputs_embeds.shape[:2], self.roles.word, device=inputs_embeds.device)
        call = given | self.media | {"input_ids": words, "use_cache": True, "return_dict": True}
        result = self.cut.entered(call, {"inputs_embeds": inputs_embeds} | carried, self.no_rows)
        return {"logits": result.logits, "past_key_values": result.past_key_values}


class Reader(torch.nn.Module):
    """Tokens to logits, with a cache, of a model that puts features among its embeddings itself."""

    def __init__(self, model: Any):
        super().__init__()
        self.model, self.config = model, model.config

    def forward(self, **given: Any) -> dict[str, Any]:
        result = self.model(**given, use_cache=True, return_dict=True)
        return {"logits": result.logits, "past_key_values": result.past_key_values}
