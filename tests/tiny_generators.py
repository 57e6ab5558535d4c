"""Tiny generative models, exported into folders, and a tokenizer for them."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import torch
import transformers as t
from transformers.modeling_outputs import BaseModelOutput

from modelport import OnnxConfig, OnnxExporter

VOCABULARY = 100
_TOKENS = {"bos_token_id": 1, "eos_token_id": None, "pad_token_id": 0}
_SMALL = {
    "vocab_size": VOCABULARY, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "intermediate_size": 64, "max_position_embeddings": 128, **_TOKENS,
}  # fmt: skip
_WHISPER_SIZES = {"layers": 2, "attention_heads": 4, "ffn_dim": 64}
_WINDOWS = {"sliding_window": 8, "layer_types": ["sliding_attention", "full_attention"]}

DECODERS: dict[str, Any] = {
    "llama": lambda: t.LlamaForCausalLM(t.LlamaConfig(**_SMALL)),
    "qwen3": lambda: t.Qwen3ForCausalLM(t.Qwen3Config(**_SMALL, head_dim=8)),
    "gpt2": lambda: t.GPT2LMHeadModel(
        t.GPT2Config(vocab_size=VOCABULARY, n_embd=32, n_layer=2, n_head=4, n_positions=128, **_TOKENS)
    ),
    "gemma3": lambda: t.Gemma3ForCausalLM(t.Gemma3TextConfig(**_SMALL, head_dim=8, **_WINDOWS)),
    "mixtral": lambda: t.MixtralForCausalLM(t.MixtralConfig(**_SMALL, num_local_experts=4)),
}


def t5() -> Any:
    sizes = {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4, "decoder_start_token_id": 0}
    return t.T5ForConditionalGeneration(t.T5Config(vocab_size=VOCABULARY, **sizes, **_TOKENS))


def whisper() -> Any:
    """Hears 60 frames of 8 numbers."""
    layers = {f"{side}_{name}": n for side in ("encoder", "decoder") for name, n in _WHISPER_SIZES.items()}
    config = t.WhisperConfig(
        vocab_size=VOCABULARY, d_model=32, num_mel_bins=8, max_source_positions=30, max_target_positions=64,
        decoder_start_token_id=2, suppress_tokens=None, begin_suppress_tokens=None, **layers, **_TOKENS,
    )  # fmt: skip
    return t.WhisperForConditionalGeneration(config)


def llava() -> Any:
    vision = t.CLIPVisionConfig(
        hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, image_size=16, patch_size=8
    )
    config = t.LlavaConfig(
        vision_config=vision, text_config=t.LlamaConfig(**_SMALL), image_token_index=VOCABULARY - 1,
        image_seq_length=4, vision_feature_layer=-1,
    )  # fmt: skip
    model = t.LlavaForConditionalGeneration(config)
    model.generation_config.update(**_TOKENS)
    return model


def made(maker: Any) -> Any:
    """The model of a maker, with weights large enough that its tokens change from step to step."""
    torch.manual_seed(0)
    model = maker().eval()
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() > 1:
                weight.mul_(5)
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
