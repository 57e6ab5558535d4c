"""What a program says of a language model by methods without inputs, under the names that ExecuTorch's runner and
optimum-executorch read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch

from ..base.dtypes import float_dtype
from ..generation.custom_attention import CacheSettings


def constant_methods(model: Any, program: Any, settings: CacheSettings, *, cached: bool) -> dict[str, Any]:
    """`get_max_seq_len` is how many tokens one call reads, `get_max_context_len` how many there may be in all."""
    config = model.config.get_text_config(decoder=True)
    rows = {row["name"]: row for row in program.lowered.dims()}
    dynamic = "seq" in rows
    heads = getattr(config, "num_attention_heads", None)
    width = getattr(config, "head_dim", None) or (config.hidden_size // heads if heads else None)
    ends = _tokens(_told(model, "eos_token_id"))
    found = {
        "get_max_seq_len": int(rows["seq"]["hi"]) if dynamic else settings.length,
        "get_max_context_len": settings.length,
        "use_kv_cache": cached,
        "use_sdpa_with_kv_cache": cached and settings.custom_sdpa,
        "enable_dynamic_shape": dynamic,
        "get_max_batch_size": 1,
        "get_bos_id": next(iter(_tokens(_told(model, "bos_token_id"))), None),
        "get_eos_id": ends[0] if ends else None,
        "get_eos_ids": ends or None,
        "get_vocab_size": getattr(config, "vocab_size", None),
        "get_n_layers": getattr(config, "num_hidden_layers", None),
        "get_n_kv_heads": getattr(config, "num_key_value_heads", None) or heads,
        "get_head_dim": width,
        "get_dtype": 5 if (float_dtype(program.config.dtype) or model.dtype) == torch.float16 else 6,
        "sliding_window": getattr(config, "sliding_window", None),
        "decoder_start_token_id": _told(model, "decoder_start_token_id"),
    }
    return {name: value for name, value in found.items() if isinstance(value, int | bool | list)}


def of_media(model: Any, methods: Iterable[str]) -> dict[str, Any]:
    """Which encoder there is, and the token that stands for what it makes."""
    for kind, ours in (("vision", "image"), ("audio", "audio")):
        if f"{kind}_encoder" in methods:
            names = (f"{ours}_token_id", f"{ours}_token_index")
            token = next((t for name in names if isinstance(t := getattr(model.config, name, None), int)), None)
            return {"modality": kind} | ({} if token is None else {f"{kind}_token_id": token})
    return {}


def of_detection(config: Any, outputs: Iterable[str], image_size: int | None) -> dict[str, Any]:
    """The labels of boxes, as optimum-executorch has them; nothing for a program that gives no boxes."""
    settings = config if isinstance(config, Mapping) else vars(config) if hasattr(config, "__dict__") else {}
    labels = settings.get("id2label")
    if "pred_boxes" not in outputs or not isinstance(labels, Mapping):
        return {}
    by_id = {int(number): str(label) for number, label in labels.items()}
    channels = settings.get("num_channels")
    return (
        {"get_label_ids": list(by_id), "get_label_names": list(by_id.values())}
        | ({"num_channels": channels} if isinstance(channels, int) else {})
        | ({} if image_size is None else {"image_size": image_size})
    )


def _told(model: Any, name: str) -> Any:
    """By the settings of generation first, as `generate` has it."""
    told = getattr(getattr(model, "generation_config", None), name, None)
    return getattr(model.config.get_text_config(decoder=True), name, None) if told is None else told


def _tokens(told: Any) -> list[int]:
    return [told] if isinstance(told, int) else [int(token) for token in told or ()]
