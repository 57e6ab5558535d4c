"""Classes of the zoo whose cache onnxruntime's own operators keep in place: the greedy tokens of PyTorch."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
from zoo import Row
from zoo_generation_test import first_rows, prompt

import modelport
from modelport import OnnxConfig, OnnxExporter

TOKENS = 12
# Only ever longer. The others keep states of another kind, have an encoder, or attend in a way of their own; `inspect`
# says which.
IN_PLACE = (
    "LlamaForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM",
    "MistralForCausalLM", "GemmaForCausalLM", "Gemma2ForCausalLM",
    "Gemma3ForCausalLM", "Gemma3nForCausalLM", "PhiForCausalLM",
    "Phi3ForCausalLM", "GPTNeoXForCausalLM", "OPTForCausalLM",
    "FalconForCausalLM", "OlmoForCausalLM", "Olmo2ForCausalLM",
    "Olmo3ForCausalLM", "Starcoder2ForCausalLM", "CohereForCausalLM",
    "Cohere2ForCausalLM", "StableLmForCausalLM", "GraniteForCausalLM",
    "GlmForCausalLM", "Glm4ForCausalLM", "SmolLM3ForCausalLM",
    "HeliumForCausalLM", "NemotronForCausalLM", "PersimmonForCausalLM",
    "Exaone4ForCausalLM", "Ernie4_5ForCausalLM", "HunYuanDenseV1ForCausalLM",
    "SeedOssForCausalLM", "ArceeForCausalLM", "ApertusForCausalLM",
    "BitNetForCausalLM", "ModernBertDecoderForCausalLM", "BioGptForCausalLM",
    "GPT2LMHeadModel", "GPTBigCodeForCausalLM", "CTRLLMHeadModel",
    "MixtralForCausalLM", "Qwen2MoeForCausalLM", "Qwen3MoeForCausalLM",
    "OlmoeForCausalLM", "GptOssForCausalLM", "Glm4MoeForCausalLM",
    "Ernie4_5_MoeForCausalLM", "GraniteMoeForCausalLM", "GraniteMoeSharedForCausalLM",
    "PhimoeForCausalLM", "Dots1ForCausalLM", "HunYuanMoEV1ForCausalLM",
    "FlexOlmoForCausalLM", "LlavaForConditionalGeneration", "VipLlavaForConditionalGeneration",
    "Idefics3ForConditionalGeneration", "SmolVLMForConditionalGeneration", "InternVLForConditionalGeneration",
    "Blip2ForConditionalGeneration", "Qwen2VLForConditionalGeneration", "Qwen2_5_VLForConditionalGeneration",
    "Qwen3VLForConditionalGeneration",
)  # fmt: skip


@pytest.mark.parametrize("row", [r for r in first_rows() if r.model_class in IN_PLACE], ids=lambda row: row.model_class)
def test_it_generates_the_tokens_of_eager(row: Row, tmp_path: Path) -> None:
    model, inputs = row.build()
    config = OnnxConfig(operators="onnxruntime")
    parts = OnnxExporter().export_for_generation(model, prompt(model, inputs, 2), config)
    assert any("in place" in fusion and not why for part in parts.values() for fusion, why, _ in part.graph.fusions())
    parts.save(tmp_path)
    loaded = modelport.load(tmp_path)
    settings = {"max_new_tokens": TOKENS, "min_new_tokens": TOKENS, "do_sample": False}
    for batch in (1, 2):  # of two, one is padded in front
        given = prompt(model, inputs, batch)
        want = model.generate(**copy.deepcopy(given), **settings)
        assert loaded.generate(**copy.deepcopy(given), **settings).tolist() == want.tolist()


def test_25_families_at_least_have_their_cache_in_place() -> None:
    assert len({row.model_class for row in first_rows()} & set(IN_PLACE)) == len(IN_PLACE) >= 25
