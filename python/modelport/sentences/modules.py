"""What makes the embedding of a sentence out of those of its tokens, as sentence-transformers does."""

from __future__ import annotations

import inspect
from typing import Any

import torch

# In the order in which older folders, which have a flag for each, put several of them together.
MODES = {
    "cls": "pooling_mode_cls_token",
    "max": "pooling_mode_max_tokens",
    "mean": "pooling_mode_mean_tokens",
    "mean_sqrt_len_tokens": "pooling_mode_mean_sqrt_len_tokens",
    "weightedmean": "pooling_mode_weightedmean_tokens",
    "lasttoken": "pooling_mode_lasttoken",
}
ACTIVATIONS = ("Identity", "Tanh", "ReLU", "GELU", "SiLU", "Sigmoid", "Mish", "LeakyReLU", "ELU")


class Pooling(torch.nn.Module):
    """One vector of many; where there are several ways, one behind the other."""

    def __init__(self, modes: tuple[str, ...]):
        super().__init__()
        self.modes = modes

    def forward(self, tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return torch.cat([self._pooled(mode, tokens, mask) for mode in self.modes], dim=-1)

    def _pooled(self, mode: str, tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        if mode in ("cls", "lasttoken"):
            places = torch.arange(1, tokens.shape[1] + 1, device=tokens.device)
            # Of the tokens that count: the first, which padding may precede, or the last.
            order = mask.to(torch.int64) * (places if mode == "lasttoken" else places.flip(0))
            return torch.gather(tokens, 1, order.argmax(1)[:, None, None].expand(-1, 1, tokens.shape[2])).squeeze(1)
        if mode == "max":
            return tokens.masked_fill(mask[..., None] == 0, float("-inf")).amax(1)
        # Sums over many tokens are kept in a wider type than fp16.
        wide = torch.float32 if tokens.dtype.itemsize < 4 else tokens.dtype
        counted = mask[..., None].to(wide)
        if mode == "weightedmean":  # by its place after the padding, from 1 on
            places = torch.arange(tokens.shape[1], device=tokens.device)
            counted = counted * (places - mask.to(torch.int64).argmax(1, keepdim=True) + 1)[..., None]
        total = (tokens.to(wide) * counted).sum(1)
        number = counted.sum(1).clamp(min=1e-9)
        return (total / (number.sqrt() if mode == "mean_sqrt_len_tokens" else number)).to(tokens.dtype)


class Normalize(torch.nn.Module):
    def forward(self, sentence: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.normalize(sentence, p=2.0, dim=-1)


class Dense(torch.nn.Module):
    def __init__(self, settings: dict[str, Any]):
        super().__init__()
        sizes = int(settings["in_features"]), int(settings["out_features"])
        self.linear = torch.nn.Linear(*sizes, bias=bool(settings.get("bias", True)))
        self.activation = getattr(torch.nn, settings.get("activation_function", "Tanh").rpartition(".")[2])()
        self.adds_itself = bool(settings.get("use_residual"))
        if self.adds_itself and sizes[0] != sizes[1]:
            self.residual = torch.nn.Linear(*sizes, bias=False)

    def forward(self, sentence: torch.Tensor) -> torch.Tensor:
        found = self.activation(self.linear(sentence))
        if not self.adds_itself:
            return found
        return found + (self.residual(sentence) if hasattr(self, "residual") else sentence)


class SentenceModel(torch.nn.Module):
    """The transformer and the modules after it: embeddings of tokens and of the sentence."""

    main_input_name = "input_ids"

    def __init__(self, transformer: Any, pooling: Pooling, rest: list[torch.nn.Module]):
        super().__init__()
        self.transformer, self.pooling, self.rest = transformer, pooling, torch.nn.ModuleList(rest)
        self.config = transformer.config
        self.takes_types = "token_type_ids" in inspect.signature(transformer.forward).parameters

    @classmethod
    def can_generate(cls) -> bool:
        return False

    @property
    def dtype(self) -> torch.dtype:
        return self.transformer.dtype

    def forward(self, input_ids: Any, attention_mask: Any, token_type_ids: Any = None) -> dict[str, torch.Tensor]:
        types = {"token_type_ids": token_type_ids} if self.takes_types and token_type_ids is not None else {}
        tokens = self.transformer(input_ids=input_ids, attention_mask=attention_mask, **types)[0]
        sentence = self.pooling(tokens, attention_mask)
        for module in self.rest:
            sentence = module(sentence)
        return {"token_embeddings": tokens, "sentence_embedding": sentence}
