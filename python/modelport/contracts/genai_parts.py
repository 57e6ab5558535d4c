"""Whisper in the parts that onnxruntime-genai runs. It divides the model otherwise than the default layout does: the
encoder also projects the keys and values of the cross-attention, and the decoder takes nothing else of the sound."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from transformers.cache_utils import DynamicCache, EncoderDecoderCache
from transformers.modeling_outputs import BaseModelOutput

from ..base.structure import flatten
from .genai_whisper import DECODER, ENCODER
from .own_parts import OwnPart

_PAST, _TOKENS = 3, 4  # of the example


def whisper_parts(model: Any, inputs: Mapping[str, Any]) -> dict[str, OwnPart]:
    """The two graphs, with the names of the default layout where both have the same."""
    sound = inputs["input_features"]
    sound = sound.repeat_interleave(2, dim=0) if len(sound) == 1 else sound
    encoder, decoder = _Encoder(model).eval(), _Decoder(model).eval()
    example = decoder.example(encoder, sound)
    return {
        ENCODER: OwnPart(encoder, {"input_features": sound}, {"input_features": {0: "batch_size"}}),
        DECODER: OwnPart(decoder, example, _axes(example)),
    }


class _Part(torch.nn.Module):
    def __init__(self, model: Any):
        super().__init__()
        self.model = model
        self.config = model.config

    def start(self, rows: int, tokens: int = 1) -> torch.Tensor:
        return torch.full((rows, tokens), self.config.decoder_start_token_id)


class _Encoder(_Part):
    def forward(self, input_features: torch.Tensor) -> dict[str, Any]:
        # What the decoder makes of its first token is not among the results, and so not in the graph.
        start = self.start(input_features.shape[0])
        result = self.model(input_features=input_features, decoder_input_ids=start, use_cache=True)
        cross = {"cross_attention_cache": result.past_key_values.cross_attention_cache}
        return {"last_hidden_state": result.encoder_last_hidden_state, "past_key_values": cross}


class _Decoder(_Part):
    def forward(self, input_ids: torch.Tensor, past_key_values: EncoderDecoderCache) -> dict[str, Any]:
        cross = past_key_values.cross_attention_cache
        past_key_values.is_updated = dict.fromkeys(range(len(cross)), True)
        unread = BaseModelOutput(cross.layers[0].keys.new_zeros(input_ids.shape[0], 1, self.config.d_model))
        result = self.model(
            decoder_input_ids=input_ids, encoder_outputs=unread, past_key_values=past_key_values, use_cache=True
        )
        own = {"self_attention_cache": result.past_key_values.self_attention_cache}
        return {"logits": result.logits, "past_key_values": own}

    @torch.no_grad()
    def example(self, encoder: _Encoder, sound: torch.Tensor) -> dict[str, Any]:
        cross = encoder(sound)["past_key_values"]["cross_attention_cache"]
        own = DynamicCache()
        for i, layer in enumerate(cross.layers):
            past = layer.keys[:, :, :_PAST]
            own.update(past.clone(), past.clone(), i)
        return {
            "input_ids": self.start(len(sound), _TOKENS),
            "past_key_values": EncoderDecoderCache(own, cross),
        }


def _axes(example: Mapping[str, Any]) -> dict[str, dict[int, Any]]:
    past = torch.export.Dim("past_sequence_length", min=0)
    axes: dict[str, dict[int, Any]] = {"input_ids": {0: "batch_size", 1: "sequence_length"}}
    for name in flatten({"past_key_values": example["past_key_values"]}).tensors():
        grows = ".self_attention_cache." in name
        axes[name] = {0: "batch_size", 2: past if grows else "encoder_sequence_length"}
    return axes
