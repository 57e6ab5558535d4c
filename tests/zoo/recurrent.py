"""State-space models, linear attention and other recurrences, alone or beside attention."""

from __future__ import annotations

from .decoders import TINY as DECODER
from .row import Make, Row, Size
from .text import ids, left_padded, one_step

TINY = {k: v for k, v in DECODER.items() if k != "max_position_embeddings"}

MAMBA = {"mamba_d_state": 8, "mamba_d_conv": 4, "mamba_expand": 2, "mamba_n_heads": 8,
         "mamba_d_head": 8, "mamba_n_groups": 1, "mamba_chunk_size": 4}


# Without kernels of their own these models step through the sequence in Python, so its length
# belongs to the program and only the batch is free.
BATCHES = (Size(3), Size(4), Size(2))


def recurrent(name: str, model_class: str, make: Make = ids, **overrides) -> Row:
    return Row(name, "recurrent", model_class, {**TINY, **overrides}, make)


def stepwise(name: str, model_class: str, make: Make = ids, **overrides) -> Row:
    return Row(name, "recurrent", model_class, {**TINY, **overrides}, make, BATCHES)


ROWS = [
    stepwise("mamba", "MambaForCausalLM", state_size=8, time_step_rank=4),
    stepwise("mamba with a state", "MambaForCausalLM", one_step, state_size=8, time_step_rank=4),
    stepwise("falcon_mamba", "FalconMambaForCausalLM", state_size=8, time_step_rank=4),
    recurrent("mamba2", "Mamba2ForCausalLM", left_padded, state_size=8, num_heads=8, head_dim=8,
              n_groups=1, chunk_size=4),
    recurrent("rwkv", "RwkvForCausalLM", attention_hidden_size=32, context_length=64),
    recurrent("xlstm", "xLSTMForCausalLM", hidden_size=128, num_heads=4, chunk_size=4),
    stepwise("recurrent_gemma", "RecurrentGemmaForCausalLM", left_padded, lru_width=32,
              attention_window_size=4, block_types=["recurrent", "attention"]),
    stepwise("jamba", "JambaForCausalLM", attn_layer_period=2, attn_layer_offset=1,
              expert_layer_period=2, expert_layer_offset=1, num_experts=4, num_experts_per_tok=2,
              mamba_d_state=8, mamba_dt_rank=4, use_mamba_kernels=False),
    recurrent("bamba", "BambaForCausalLM", left_padded, attn_layer_indices=[1], **MAMBA),
    recurrent("falcon_h1", "FalconH1ForCausalLM", **{**MAMBA, "mamba_d_ssm": 64}),
    recurrent("granitemoehybrid", "GraniteMoeHybridForCausalLM", num_local_experts=4,
              num_experts_per_tok=2, shared_intermediate_size=24, layer_types=["mamba", "attention"],
              **MAMBA),
    recurrent("zamba2", "Zamba2ForCausalLM", mamba_d_state=8, mamba_ngroups=1, n_mamba_heads=8,
              mamba_headdim=8, chunk_size=4, layers_block_type=["mamba", "hybrid"],
              num_key_value_heads=4, num_mem_blocks=1, use_mem_rope=True),
    stepwise("zamba", "ZambaForCausalLM", mamba_d_state=8, mamba_dt_rank=4, n_mamba_heads=2,
              num_hidden_layers=3, layers_block_type=["linear_attention", "hybrid", "hybrid"],
              use_mamba_kernels=False,
              num_key_value_heads=4),
    recurrent("qwen3_next", "Qwen3NextForCausalLM", left_padded, head_dim=8,
              layer_types=["linear_attention", "full_attention"], linear_conv_kernel_dim=2,
              linear_key_head_dim=8, linear_value_head_dim=8, linear_num_key_heads=2,
              linear_num_value_heads=4, num_experts=4, num_experts_per_tok=2,
              moe_intermediate_size=20, shared_expert_intermediate_size=24),
    recurrent("lfm2", "Lfm2ForCausalLM", left_padded, layer_types=["conv", "full_attention"]),
    recurrent("lfm2_moe", "Lfm2MoeForCausalLM", layer_types=["conv", "full_attention"],
              num_experts=4, num_experts_per_tok=2, moe_intermediate_size=20, num_dense_layers=1),
    recurrent("nemotron_h", "NemotronHForCausalLM", layers_block_type=["mamba", "attention"],
              mamba_num_heads=8, mamba_head_dim=8, ssm_state_size=8, n_groups=1, chunk_size=4),
]
