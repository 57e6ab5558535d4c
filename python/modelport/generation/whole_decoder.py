"""Decoders without a cache: the whole text goes in for each token, the logits of the last one come out."""

from __future__ import annotations

from typing import Any

import torch

from .static_decoder import TOKENS, Tensors, ids_for


class WholeDecoder(torch.nn.Module):
    """Tokens alone, [1, tokens]."""

    def __init__(self, model: Any):
        super().__init__()
        self.model, self.config = model, model.config

    def forward(self, input_ids: torch.Tensor) -> Tensors:
        return {"logits": self.model(input_ids=input_ids, use_cache=False).logits[:, -1:]}

    def example(self) -> Tensors:
        return {"input_ids": ids_for(self.model, TOKENS)}


class PreparedDecoder(WholeDecoder):
    """What `generate` adds to the tokens, such as a place for the next one, is made in the program."""

    def forward(self, input_ids: torch.Tensor) -> Tensors:
        given = self.model.prepare_inputs_for_generation(input_ids, use_cache=False)
        return {"logits": self.model(**given).logits[:, -1:]}


class WholeCrossDecoder(torch.nn.Module):
    """The decoder of an encoder-decoder."""

    def __init__(self, model: Any, encoded: type[Any], states: torch.Tensor):
        """`encoded` is the class of what the encoder gives, `states` an example of it."""
        super().__init__()
        self.model, self.config = model, model.config
        self._encoded, self._states = encoded, states

    def forward(self, input_ids: torch.Tensor, encoder_hidden_states: torch.Tensor) -> Tensors:
        encoded = self._encoded(last_hidden_state=encoder_hidden_states)
        given = {"decoder_input_ids": input_ids, "encoder_outputs": encoded}
        return {"logits": self.model(**given, use_cache=False).logits[:, -1:]}

    def example(self) -> Tensors:
        return {"input_ids": ids_for(self.model, TOKENS), "encoder_hidden_states": self._states}
