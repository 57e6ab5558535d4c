"""Encoder-decoders over text."""

from __future__ import annotations

from .row import Make, Row
from .text import continued_translation, ids_and_decoder_ids, right_padded_and_decoder_ids

BART = {
    "vocab_size": 99,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 40,
    "decoder_ffn_dim": 40,
    "max_position_embeddings": 64,
    "pad_token_id": 1,
    "bos_token_id": 0,
    "eos_token_id": 2,
    "decoder_start_token_id": 2,
}

T5 = {
    "vocab_size": 99,
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 40,
    "num_layers": 2,
    "num_decoder_layers": 2,
    "num_heads": 4,
    "relative_attention_num_buckets": 8,
    "relative_attention_max_distance": 16,
    "pad_token_id": 0,
    "eos_token_id": 1,
    "decoder_start_token_id": 0,
}


def bart(
    name: str, model_class: str, make: Make = right_padded_and_decoder_ids, **overrides
) -> Row:
    return Row(name, "seq2seq", model_class, {**BART, **overrides}, make)


def t5(name: str, model_class: str, make: Make = right_padded_and_decoder_ids, **overrides) -> Row:
    return Row(name, "seq2seq", model_class, {**T5, **overrides}, make)


ROWS = [
    bart("bart", "BartForConditionalGeneration"),
    bart("bart with a cache", "BartForConditionalGeneration", continued_translation),
    bart("mbart", "MBartForConditionalGeneration"),
    bart("pegasus", "PegasusForConditionalGeneration", pad_token_id=0),
    bart("marian", "MarianMTModel", ids_and_decoder_ids, pad_token_id=0),
    bart("m2m_100", "M2M100ForConditionalGeneration"),
    bart("blenderbot", "BlenderbotForConditionalGeneration", pad_token_id=0),
    bart("blenderbot_small", "BlenderbotSmallForConditionalGeneration", ids_and_decoder_ids),
    bart("plbart", "PLBartModel"),
    bart("mvp", "MvpForConditionalGeneration", ids_and_decoder_ids),
    bart("led", "LEDForConditionalGeneration", attention_window=4,
         max_encoder_position_embeddings=64, max_decoder_position_embeddings=64),
    bart("pegasus_x", "PegasusXForConditionalGeneration", block_size=4, num_global_tokens=3,
         pad_token_id=0),
    bart("bigbird_pegasus", "BigBirdPegasusForConditionalGeneration",
         attention_type="original_full", pad_token_id=0),
    # The loop over the experts is in Python: with two, each of them gets tokens whatever the data.
    bart("nllb_moe", "NllbMoeForConditionalGeneration", num_experts=2, encoder_sparse_step=2,
         decoder_sparse_step=2, router_ignore_padding_tokens=False, expert_capacity=64),
    bart("fsmt", "FSMTForConditionalGeneration", ids_and_decoder_ids, src_vocab_size=99,
         tgt_vocab_size=99, langs=["en", "de"]),
    Row("prophetnet", "seq2seq", "ProphetNetForConditionalGeneration",
        {"vocab_size": 99, "hidden_size": 32, "num_encoder_layers": 2, "num_decoder_layers": 2,
         "num_encoder_attention_heads": 4, "num_decoder_attention_heads": 4,
         "encoder_ffn_dim": 40, "decoder_ffn_dim": 40, "max_position_embeddings": 64,
         "ngram": 2, "num_buckets": 8, "relative_max_distance": 16},
        right_padded_and_decoder_ids),
    t5("t5", "T5ForConditionalGeneration"),
    t5("mt5", "MT5ForConditionalGeneration", ids_and_decoder_ids,
       feed_forward_proj="gated-gelu"),
    t5("umt5", "UMT5ForConditionalGeneration"),
    t5("longt5", "LongT5ForConditionalGeneration", local_radius=3,
       encoder_attention_type="transient-global", global_block_size=4),
    t5("switch_transformers", "SwitchTransformersForConditionalGeneration", num_experts=2,
       expert_capacity=64, num_sparse_encoder_layers=1, num_sparse_decoder_layers=1),
]
