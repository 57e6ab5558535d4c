"""The embedding that transformers.js runs: the client puts the features of images and sound among the tokens itself, so
that this one takes tokens alone."""

from __future__ import annotations

from typing import Any

import torch

from .own_parts import OwnPart


class _Words(torch.nn.Module):
    def __init__(self, model: Any):
        super().__init__()
        self.embedding = model.get_input_embeddings()

    def forward(self, input_ids: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"inputs_embeds": self.embedding(input_ids)}


def words(model: Any) -> OwnPart:
    axes = {"input_ids": {0: "batch_size", 1: "sequence_length"}}
    return OwnPart(_Words(model).eval(), {"input_ids": torch.zeros(2, 3, dtype=torch.int64)}, axes)
