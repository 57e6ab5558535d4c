"""Tiny generative models, exported into folders, and a tokenizer for them."""

from __future__ import annotations

import copy
import functools
from pathlib import Path
from typing import Any

import torch
import transformers as t
from tiny_models import SMALL, VOCABULARY, lively, tiny
from transformers.modeling_outputs import BaseModelOutput

from modelport import OnnxConfig, OnnxExporter

_TOKENS = {"bos_token_id": 1, "eos_token_id": None, "pad_token_id": 0}
_TEXT = {"max_position_embeddings": 128, **_TOKENS}

DECODERS: dict[str, Any] = {
    **{name: functools.partial(tiny, name, **_TEXT) for name in ("llama", "qwen3", "gemma3", "mixtral")},
    "gpt2": functools.partial(tiny, "gpt2", n_positions=128, **_TOKENS),
}
t5 = functools.partial(tiny, "t5", **_TOKENS)
whisper = functools.partial(tiny, "whisper", **_TOKENS)  # hears 60 frames of 8 numbers


def llava() -> Any:
    vision = t.CLIPVisionConfig(image_size=16, patch_size=8, **SMALL)
    config = t.LlavaConfig(
        vision_config=vision, text_config=DECODERS["llama"]().config, image_token_index=VOCABULARY - 1,
        image_seq_length=4, vision_feature_layer=-1,
    )  # fmt: skip
    model = t.LlavaForConditionalGeneration(config)
    model.generation_config.update(**_TOKENS)
    return model


def made(maker: Any) -> Any:
    """The model of a maker, with weights large enough that its tokens change from step to step."""
    torch.manual_seed(0)
    model = maker().eval()
    lively(model)
    model.config.architectures = [type(model).__name__]
    return model


def prompt(batch: int, length: int) -> dict[str, torch.Tensor]:
    """Tokens of which the first row starts with padding where there are several rows."""
    ids = torch.randint(5, VOCABULARY - 1, (batch, length), generator=torch.Generator().manual_seed(batch))
    mask = torch.ones_like(ids)
    if batch > 1:
        mask[0, : length // 2] = 0
    return {"input_ids": ids, "attention_mask": mask}


def export_decoder(model: Any, folder: Path) -> Path:
    return OnnxExporter().export_for_generation(model, prompt(2, 6), OnnxConfig()).save(folder)


class _Decoder(torch.nn.Module):
    """The decoder of an encoder-decoder with the names that optimum gives its inputs."""

    def __init__(self, model: Any):
        super().__init__()
        self.model, self.config = model, model.config

    def forward(
        self, input_ids: Any, encoder_hidden_states: Any, encoder_attention_mask: Any, past_key_values: Any = None
    ) -> dict[str, Any]:
        out = self.model(
            decoder_input_ids=input_ids, encoder_outputs=BaseModelOutput(encoder_hidden_states),
            attention_mask=encoder_attention_mask, past_key_values=past_key_values, use_cache=True,
        )  # fmt: skip
        return {"logits": out.logits, "past_key_values": out.past_key_values}


@torch.no_grad()
def export_as_optimum_does(model: Any, folder: Path) -> Path:
    """An encoder-decoder in three files: one for the prompt, and one for each step after it."""
    folder.mkdir()
    exporter, config = OnnxExporter(), OnnxConfig(dynamic=True)
    given = prompt(2, 9)
    encoder = copy.deepcopy(model.get_encoder())
    encoder.config.use_cache = False
    exporter.export(encoder, dict(given), config).save(folder / "encoder_model.onnx")
    decoder = _Decoder(model).eval()
    first = {
        "input_ids": prompt(2, 3)["input_ids"],
        "encoder_hidden_states": model.get_encoder()(**given).last_hidden_state,
        "encoder_attention_mask": given["attention_mask"],
    }
    exporter.export(decoder, dict(first), config).save(folder / "decoder_model.onnx")
    step = first | {"input_ids": prompt(2, 1)["input_ids"], "past_key_values": decoder(**first)["past_key_values"]}
    exporter.export(decoder, step, config).save(folder / "decoder_with_past_model.onnx")
    model.config.save_pretrained(folder)
    model.generation_config.save_pretrained(folder)
    return folder


def save_tokenizer(folder: Path, *, chat: bool = False, further: str = "<last>") -> Any:
    """Words w5 to w98, each a token of that number."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = ["<pad>", "<s>", "</s>", "<unk>", "<user>", *(f"w{i}" for i in range(5, VOCABULARY - 1)), further]
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    special = {"pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    fast = t.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special, additional_special_tokens=[further])
    if chat:
        fast.chat_template = "<user> {% for message in messages %}{{ message['content'] }}{% endfor %}"
    fast.save_pretrained(folder)
    return fast
