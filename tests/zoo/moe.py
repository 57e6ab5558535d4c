"""Text decoders with a mixture of experts."""

from __future__ import annotations

from .decoders import SLIDING
from .decoders import TINY as DECODER
from .row import Make, Row
from .text import continuation, ids, left_padded

TINY = {
    **DECODER,
    "num_experts": 6,
    "num_local_experts": 6,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 20,
}

LATENT = {"q_lora_rank": 12, "kv_lora_rank": 8, "qk_nope_head_dim": 8, "qk_rope_head_dim": 4,
          "v_head_dim": 8, "num_key_value_heads": 4}


def moe(name: str, model_class: str, make: Make = left_padded, **overrides) -> Row:
    return Row(name, "moe", model_class, {**TINY, **overrides}, make)


ROWS = [
    moe("mixtral", "MixtralForCausalLM"),
    moe("mixtral with a cache", "MixtralForCausalLM", continuation),
    moe("qwen2_moe", "Qwen2MoeForCausalLM", shared_expert_intermediate_size=24),
    moe("qwen3_moe", "Qwen3MoeForCausalLM", head_dim=16, norm_topk_prob=True),
    moe("olmoe", "OlmoeForCausalLM", ids),
    moe("gpt_oss", "GptOssForCausalLM", head_dim=16, **SLIDING),
    moe("deepseek_v2", "DeepseekV2ForCausalLM", n_routed_experts=6, n_group=2, topk_group=1,
        topk_method="group_limited_greedy", first_k_dense_replace=1, head_dim=4, **LATENT),
    moe("deepseek_v3", "DeepseekV3ForCausalLM", n_routed_experts=6, n_group=2, topk_group=1,
        first_k_dense_replace=1, **LATENT),
    moe("glm4_moe", "Glm4MoeForCausalLM", n_routed_experts=6, n_group=1, topk_group=1,
        first_k_dense_replace=1, head_dim=8),
    moe("ernie4_5_moe", "Ernie4_5_MoeForCausalLM", ids, moe_num_experts=6, moe_k=2,
        moe_layer_start_index=1, moe_num_shared_experts=1),
    moe("granitemoe", "GraniteMoeForCausalLM"),
    moe("granitemoeshared", "GraniteMoeSharedForCausalLM", ids, shared_intermediate_size=24),
    moe("phimoe", "PhimoeForCausalLM"),
    moe("jetmoe", "JetMoeForCausalLM", kv_channels=8, num_hidden_layers=2),
    # The loop over the experts is in Python: with two of two chosen it is the same for all data.
    moe("dbrx", "DbrxForCausalLM", d_model=32, n_heads=4, n_layers=2, max_seq_len=64,
        attn_config={"kv_n_heads": 2, "clip_qkv": 4.0, "rope_theta": 10000.0},
        ffn_config={"ffn_hidden_size": 20, "moe_num_experts": 2, "moe_top_k": 2,
                    "hidden_size": 32}),
    moe("llama4_text", "Llama4ForCausalLM", head_dim=8, intermediate_size_mlp=40,
        attention_chunk_size=4, interleave_moe_layer_step=2),
    moe("dots1", "Dots1ForCausalLM", n_routed_experts=6, n_shared_experts=1, n_group=1, topk_group=1,
        first_k_dense_replace=1, head_dim=8),
    moe("minimax", "MiniMaxForCausalLM", ids, block_size=16,
        layer_types=["linear_attention", "full_attention"]),
    moe("hunyuan_v1_moe", "HunYuanMoEV1ForCausalLM", moe_topk=[2, 2], head_dim=8),
    moe("flex_olmo", "FlexOlmoForCausalLM", ids),
]
