"""Text decoders, dense."""

from __future__ import annotations

from .row import Make, Row, Size
from .text import continuation, continuation_in_place, ids, left_padded

TINY = {
    "vocab_size": 99,
    "hidden_size": 32,
    "intermediate_size": 40,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}

GPT2 = {"vocab_size": 99, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64,
        "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}


def decoder(name: str, model_class: str, make: Make = left_padded, **overrides) -> Row:
    return Row(name, "decoder", model_class, {**TINY, **overrides}, make)


SLIDING = {"sliding_window": 4, "layer_types": ["sliding_attention", "full_attention"]}

ROWS = [
    decoder("llama", "LlamaForCausalLM"),
    decoder("llama with a cache", "LlamaForCausalLM", continuation),
    decoder("llama with a static cache", "LlamaForCausalLM", continuation_in_place),
    decoder("qwen2", "Qwen2ForCausalLM", tie_word_embeddings=True),
    decoder("qwen2 with a cache", "Qwen2ForCausalLM", continuation),
    decoder("qwen3", "Qwen3ForCausalLM", ids, head_dim=16),
    decoder("qwen3 with a cache", "Qwen3ForCausalLM", continuation, head_dim=16),
    decoder("mistral", "MistralForCausalLM", sliding_window=4),
    decoder("mistral with a cache", "MistralForCausalLM", continuation, sliding_window=None),
    decoder("gemma", "GemmaForCausalLM", head_dim=16),
    decoder("gemma2", "Gemma2ForCausalLM", head_dim=16, **SLIDING),
    decoder("gemma3_text", "Gemma3ForCausalLM", head_dim=16, **SLIDING),
    # A sliding layer counts what it has seen in Python: the past belongs to the program.
    Row(
        "gemma3_text with a cache",
        "decoder",
        "Gemma3ForCausalLM",
        {**TINY, "head_dim": 16, **SLIDING},
        continuation,
        (Size(3), Size(4, seq=11), Size(2, seq=6)),
    ),
    decoder("gemma3n_text", "Gemma3nForCausalLM", head_dim=16, sliding_window=4,
            num_hidden_layers=4, num_kv_shared_layers=2, intermediate_size=40,
            layer_types=["sliding_attention", "full_attention"] * 2, laurel_rank=12,
            vocab_size_per_layer_input=99, hidden_size_per_layer_input=10, altup_num_inputs=3,
            activation_sparsity_pattern=[0.95, 0.0, 0.0, 0.0]),
    decoder("phi", "PhiForCausalLM", ids),
    decoder("phi3", "Phi3ForCausalLM"),
    decoder("gpt_neox", "GPTNeoXForCausalLM"),
    decoder("gpt_neox with a cache", "GPTNeoXForCausalLM", continuation, num_key_value_heads=4),
    decoder("opt", "OPTForCausalLM", ffn_dim=40, word_embed_proj_dim=24),
    decoder("bloom", "BloomForCausalLM", n_layer=2, n_head=4),
    decoder("falcon", "FalconForCausalLM", new_decoder_architecture=True, num_kv_heads=2),
    decoder("falcon with alibi", "FalconForCausalLM", alibi=True, multi_query=True),
    decoder("mpt", "MptForCausalLM", d_model=32, n_layers=2, n_heads=4, max_seq_len=64),
    decoder("olmo", "OlmoForCausalLM", ids, clip_qkv=3.0),
    decoder("olmo2", "Olmo2ForCausalLM"),
    decoder("olmo3", "Olmo3ForCausalLM", **SLIDING),
    decoder("starcoder2", "Starcoder2ForCausalLM", sliding_window=4),
    decoder("cohere", "CohereForCausalLM", use_qk_norm=True),
    decoder("cohere2", "Cohere2ForCausalLM", head_dim=8, **SLIDING),
    decoder("stablelm", "StableLmForCausalLM", qk_layernorm=True),
    decoder("granite", "GraniteForCausalLM", ids, residual_multiplier=0.5, logits_scaling=2.0),
    decoder("glm", "GlmForCausalLM", head_dim=8),
    decoder("glm4", "Glm4ForCausalLM", head_dim=8),
    decoder("smollm3", "SmolLM3ForCausalLM", no_rope_layers=[1, 0]),
    decoder("helium", "HeliumForCausalLM", head_dim=8),
    decoder("nemotron", "NemotronForCausalLM"),
    decoder("persimmon", "PersimmonForCausalLM", ids),
    decoder("exaone4", "Exaone4ForCausalLM", **SLIDING),
    decoder("ernie4_5", "Ernie4_5ForCausalLM", head_dim=8),
    decoder("hunyuan_v1_dense", "HunYuanDenseV1ForCausalLM", head_dim=8),
    decoder("seed_oss", "SeedOssForCausalLM", head_dim=8),
    decoder("arcee", "ArceeForCausalLM", ids),
    decoder("apertus", "ApertusForCausalLM"),
    decoder("diffllama", "DiffLlamaForCausalLM", ids),
    decoder("bitnet", "BitNetForCausalLM"),
    decoder("modernbert_decoder", "ModernBertDecoderForCausalLM", local_attention=6),
    decoder("biogpt", "BioGptForCausalLM"),
    decoder("xglm", "XGLMForCausalLM", d_model=32, num_layers=2, attention_heads=4, ffn_dim=40),
    decoder("minicpm3", "MiniCPM3ForCausalLM", q_lora_rank=12, kv_lora_rank=8,
            qk_nope_head_dim=8, qk_rope_head_dim=4, v_head_dim=8, num_key_value_heads=4),
    decoder("gpt_neo", "GPTNeoForCausalLM", num_layers=2, num_heads=4, window_size=4,
            attention_types=[[["global", "local"], 1]]),
    Row("gpt2", "decoder", "GPT2LMHeadModel", GPT2, left_padded),
    Row("gpt2 with a cache", "decoder", "GPT2LMHeadModel", GPT2, continuation),
    Row("gptj", "decoder", "GPTJForCausalLM", {**GPT2, "rotary_dim": 4}, left_padded),
    Row("codegen", "decoder", "CodeGenForCausalLM", {**GPT2, "rotary_dim": 4}, ids),
    Row("gpt_bigcode", "decoder", "GPTBigCodeForCausalLM", GPT2, left_padded),
    Row("openai_gpt", "decoder", "OpenAIGPTLMHeadModel", GPT2, ids),
    Row("ctrl", "decoder", "CTRLLMHeadModel", {**GPT2, "dff": 40}, ids),
]
