"""Checkpoint folders of tiny models, for tests that start from a folder."""

from __future__ import annotations

from pathlib import Path

import torch
import transformers as t

SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}


def bert() -> t.PreTrainedModel:
    return t.BertForMaskedLM(t.BertConfig(vocab_size=100, **SMALL))


def llama() -> t.PreTrainedModel:
    return t.LlamaForCausalLM(t.LlamaConfig(vocab_size=100, num_key_value_heads=2, **SMALL))


def vit() -> t.PreTrainedModel:
    return t.ViTForImageClassification(t.ViTConfig(image_size=32, patch_size=8, **SMALL))


MAKERS = {"bert": bert, "llama": llama, "vit": vit}


def save(name: str, folder: Path) -> Path:
    torch.manual_seed(0)
    MAKERS[name]().save_pretrained(folder / name)
    (folder / name / "tokenizer_config.json").write_text("{}")
    return folder / name
