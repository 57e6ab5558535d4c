"""Tiny decoders, one for each way in which attention on a cache is written, and their two exports: of standard
operators and of onnxruntime's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import onnxruntime
import torch
import transformers as t

from modelport import OnnxConfig, OnnxExporter

VOCABULARY = 128
WINDOW = 8
_TOKENS = {"bos_token_id": 1, "eos_token_id": None, "pad_token_id": 0}
_SMALL = {
    "vocab_size": VOCABULARY, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "intermediate_size": 96, "max_position_embeddings": 64, **_TOKENS,
}  # fmt: skip
_WIDE = _SMALL | {"hidden_size": 128}


def _of(config: type, **more: Any) -> Callable[[], Any]:
    return lambda: t.AutoModelForCausalLM.from_config(config(**(_SMALL | more)))


# Each with what its attention has besides keys and values, and whether its rotation is inside.
DECODERS: dict[str, tuple[Callable[[], Any], str, bool]] = {
    "llama": (_of(t.LlamaConfig), "do_rotary=1", True),
    "llama, narrow heads": (_of(t.LlamaConfig, head_dim=8), "scale=", False),
    "qwen3": (_of(t.Qwen3Config, head_dim=16), "do_rotary=1", True),
    "gemma2": (_of(t.Gemma2Config, head_dim=16, sliding_window=WINDOW), "softcap=50.0", True),
    "gemma3": (_of(t.Gemma3TextConfig, head_dim=16, sliding_window=WINDOW), "local_window_size=8", True),
    "mistral": (_of(t.MistralConfig, sliding_window=WINDOW), "local_window_size=8", True),
    "phi": (_of(t.PhiConfig, **_WIDE), "do_rotary=1", True),  # half of the channels are turned
    "cohere": (_of(t.CohereConfig), "rotary_interleaved=1", True),
    "ernie": (_of(t.Ernie4_5Config, head_dim=16), "rotary_interleaved=1", True),
    "gpt_oss": (_of(t.GptOssConfig, head_dim=16, sliding_window=WINDOW, num_local_experts=4), "do_rotary=1", True),
    "gpt2": (lambda: t.GPT2LMHeadModel(t.GPT2Config(vocab_size=VOCABULARY, n_embd=64, n_layer=2, n_head=4,
                                                    n_positions=64, **_TOKENS)), "scale=", False),
    "xglm": (_of(t.XGLMConfig, ffn_dim=96), "scale=1.0", False),  # rows and heads in one axis
}  # fmt: skip


def made(name: str) -> Any:
    torch.manual_seed(0)
    return DECODERS[name][0]().eval()


def padded(*lengths: int, side: str = "left") -> dict[str, torch.Tensor]:
    """Rows of these many tokens with their padding in front, as `generate` wants it, or behind them."""
    torch.manual_seed(1)
    longest, tokens = max(lengths), torch.tensor(lengths)[:, None]
    ids, places = torch.randint(3, VOCABULARY, (len(lengths), longest)), torch.arange(longest)
    mask = (places < tokens if side == "right" else places >= longest - tokens).long()
    return {"input_ids": ids * mask, "attention_mask": mask}


def exported(model: Any, operators: str = "onnxruntime", processor: str = "any", **config: Any) -> Any:
    ids = torch.randint(3, VOCABULARY, (2, 5))
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    return OnnxExporter().export_for_generation(
        model, inputs, OnnxConfig(operators=operators, processor=processor, **config)
    )


class Stepped(NamedTuple):
    logits: Any
    cache: dict[str, Any]


class Steps:
    """A decoder that is fed as onnxruntime-genai feeds one."""

    def __init__(self, program: Any):
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        self.session = onnxruntime.InferenceSession(program.to_bytes(), options)
        self.inputs = {slot.name: slot for slot in self.session.get_inputs()}
        self.outputs = [slot.name for slot in self.session.get_outputs()]

    def empty(self, batch: int) -> dict[str, Any]:
        caches = [slot for name, slot in self.inputs.items() if name.startswith("past")]
        return {slot.name: np.zeros((batch, slot.shape[1], 0, slot.shape[3]), np.float32) for slot in caches}

    def __call__(self, ids: Any, mask: Any, cache: Mapping[str, Any]) -> Stepped:
        """Positions count the tokens of a row."""
        positions = np.maximum(mask.cumsum(1) - 1, 0)[:, -ids.shape[1] :]
        feeds = {"input_ids": ids, "attention_mask": mask, "position_ids": positions, **cache}
        values = self.session.run(self.outputs, {name: feeds[name] for name in self.inputs})
        results = dict(zip(self.outputs, values, strict=True))
        presents = {name: value for name, value in results.items() if name.startswith("present")}
        return Stepped(results["logits"], {n.replace("present", "past_key_values"): v for n, v in presents.items()})
