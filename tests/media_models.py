"""Tiny models that see or hear beyond those of the zoo: each shows another way of how features get among the tokens."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
import transformers
from zoo import ROWS as ZOO
from zoo import Row, Size
from zoo.multimodal import SIGHT
from zoo.row import Draw, Inputs, Make
from zoo.vlm import CLIP, DECODER, END, IMAGE, LLAMA, QWEN2, START, VIDEO, image_then_text, patches, prompt, vlm

SIZES = (Size(2, seq=7), Size(4, seq=11), Size(5, seq=6))
AUDIO = 3  # the token that stands for sound
MELS, FRAMES = 16, 20

HEARING = {
    "num_mel_bins": MELS, "hidden_size": 32, "d_model": 32, "intermediate_size": 40, "encoder_ffn_dim": 40,
    "num_hidden_layers": 2, "encoder_layers": 2, "num_attention_heads": 4, "encoder_attention_heads": 4,
    "max_source_positions": FRAMES // 2,
}  # fmt: skip
QFORMER = {
    "vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 40,
    "max_position_embeddings": 64, "encoder_hidden_size": 24,
}  # fmt: skip
PATCHES = {
    "depth": 2, "hidden_size": 32, "num_heads": 4, "patch_size": 4, "spatial_merge_size": 2, "temporal_patch_size": 2,
    "out_hidden_size": 32, "intermediate_size": 40,
}  # fmt: skip
MROPE = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 1, 1]}


def sound(tokens: int, mask: str | None = None, frames: int = FRAMES) -> Make:
    """Spectrograms, with a mask over their frames if it has a name."""

    def make(draw: Draw) -> Inputs:
        batch = draw.size.batch
        inputs = {**prompt(draw, tokens), "input_features": draw.normal(batch, MELS, frames)}
        return inputs if mask is None else {**inputs, mask: torch.ones(batch, frames, dtype=torch.int64)}

    return make


def windows_of_sound(draw: Draw) -> Inputs:
    """Frames first, and a mask over what the encoder makes of them."""
    batch = draw.size.batch
    mask = torch.ones(batch, 6, dtype=torch.bool)
    return {**prompt(draw, 6), "input_features": draw.normal(batch, 12, MELS), "input_features_mask": mask}


def tiles(draw: Draw) -> Inputs:
    """Images of 48 by 48 as a small one and four tiles of 24 by 24: 9 patches, 36 patches and 6 ends of rows."""
    batch = draw.size.batch
    sizes = torch.tensor([[48, 48]]).repeat(batch, 1)
    return {**prompt(draw, 9 + 36 + 6), "pixel_values": draw.picture(batch, 5, 3, 24, 24), "image_sizes": sizes}


def with_sizes(draw: Draw) -> Inputs:
    inputs = image_then_text(4)(draw)
    return {**inputs, "image_sizes": torch.tensor([[32, 32]]).repeat(draw.size.batch, 1)}


def with_places(draw: Draw) -> Inputs:
    inputs = image_then_text(4)(draw)
    return {**inputs, "image_embeds_position_mask": (inputs["input_ids"] == IMAGE).to(torch.int64)}


def patches_with_places(draw: Draw) -> Inputs:
    """36 patches of 8 by 8, of which nine each become one."""
    batch = draw.size.batch
    places = torch.cartesian_prod(torch.arange(6), torch.arange(6)).repeat(batch, 1, 1)
    inputs = prompt(draw, 4)
    types = (inputs["input_ids"] == IMAGE).to(torch.int64)
    pixels = draw.uniform(batch, 36, 3 * 8 * 8)
    return {**inputs, "pixel_values": pixels, "image_position_ids": places, "mm_token_type_ids": types}


def packed_patches(draw: Draw) -> Inputs:
    batch = draw.size.batch
    return {
        **prompt(draw, 4),
        "pixel_values": draw.normal(batch, 16, 3 * 8 * 8),
        "spatial_shapes": torch.tensor([[4, 4]]).repeat(batch, 1),
        "pixel_attention_mask": torch.ones(batch, 16, dtype=torch.int64),
    }


def grids(draw: Draw) -> Inputs:
    return {name: value for name, value in patches(draw).items() if name != "position_ids"}


def tokens(draw: Draw, *head: int) -> Inputs:
    text = draw.integers(END + 1, 89, draw.size.batch, draw.size.seq)
    ids = torch.cat([torch.tensor(head).repeat(draw.size.batch, 1), text], dim=1)
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


def image_and_video(draw: Draw) -> Inputs:
    batch = draw.size.batch
    inputs = tokens(draw, START, *[IMAGE] * 6, END, START, *[VIDEO] * 12, END)
    kinds = (inputs["input_ids"] == IMAGE).long() + 2 * (inputs["input_ids"] == VIDEO).long()
    return {
        **inputs,
        "pixel_values": draw.normal(batch * 24, 96),
        "image_grid_thw": torch.tensor([[1, 4, 6]]).repeat(batch, 1),
        "pixel_values_videos": draw.normal(batch * 48, 96),
        "video_grid_thw": torch.tensor([[2, 4, 6]]).repeat(batch, 1),
        "mm_token_type_ids": kinds,
    }


def image_and_sound(draw: Draw) -> Inputs:
    batch = draw.size.batch
    return {
        **tokens(draw, 90, *[94] * 6, 91, 92, *[AUDIO] * 5, 93),
        "input_features": draw.normal(batch, MELS, FRAMES),
        "feature_attention_mask": torch.ones(batch, FRAMES, dtype=torch.int64),
        "pixel_values": draw.normal(batch * 24, 96),
        "image_grid_thw": torch.tensor([[1, 4, 6]]).repeat(batch, 1),
    }


def across(draw: Draw) -> Inputs:
    """For layers that attend to the image: tiles, and which of them each token sees."""
    batch, inputs = draw.size.batch, prompt(draw, 1)
    length = inputs["input_ids"].shape[1]
    return {
        **inputs,
        "pixel_values": draw.picture(batch, 1, 2, 3, 24, 24),
        "aspect_ratio_ids": torch.ones(batch, 1, dtype=torch.int64),
        "aspect_ratio_mask": torch.ones(batch, 1, 2, dtype=torch.int64),
        "cross_attention_mask": torch.ones(batch, length, 1, 2, dtype=torch.int64),
    }


def instruction(draw: Draw) -> Inputs:
    words = draw.integers(END + 1, 99, draw.size.batch, 4)
    return {**image_then_text(5)(draw), "qformer_input_ids": words, "qformer_attention_mask": torch.ones_like(words)}


def hearing(name: str, model_class: str, make: Make, **config: Any) -> Row:
    config = {"audio_token_id": AUDIO, "audio_token_index": AUDIO, "pad_token_id": 0, **config}
    return Row(name, "multimodal", model_class, config, make, SIZES)


def kosmos2() -> Any:
    text = {
        "vocab_size": 99, "embed_dim": 32, "layers": 2, "ffn_dim": 40, "attention_heads": 4,
        "max_position_embeddings": 64,
    }  # fmt: skip
    return transformers.Kosmos2Config(text_config=text, vision_config=SIGHT, latent_query_num=4, pad_token_id=0)


OPT = {**DECODER, "model_type": "opt", "ffn_dim": 40, "word_embed_proj_dim": 32}
SLIDING = {"head_dim": 8, "sliding_window": 4, "layer_types": ["sliding_attention", "full_attention"]}
OMNI = {
    "image_token_id": 94, "image_token_index": 94, "video_token_id": 95, "video_token_index": 95,
    "vision_start_token_id": 90, "vision_end_token_id": 91, "audio_start_token_id": 92, "audio_end_token_id": 93,
}  # fmt: skip

ROWS = [
    hearing("qwen2_audio", "Qwen2AudioForConditionalGeneration", sound(5, "feature_attention_mask"),
            text_config=QWEN2, audio_config={**HEARING, "model_type": "qwen2_audio_encoder"}),
    hearing("voxtral", "VoxtralForConditionalGeneration", sound(8), text_config=LLAMA,
            audio_config={**HEARING, "model_type": "voxtral_encoder", "intermediate_size": 64}),
    hearing("granite_speech", "GraniteSpeechForConditionalGeneration", windows_of_sound,
            text_config={**DECODER, "model_type": "granite"}, window_size=4, downsample_rate=2,
            has_lora_adapter=False,
            encoder_config={"input_dim": MELS, "hidden_dim": 32, "num_layers": 2, "num_heads": 4, "dim_head": 8,
                            "feedforward_mult": 2, "context_size": 4, "output_dim": 12, "conv_kernel_size": 3,
                            "max_pos_emb": 8},
            projector_config={**QFORMER, "encoder_hidden_size": 32, "model_type": "blip_2_qformer"}),
    hearing("audioflamingo3", "AudioFlamingo3ForConditionalGeneration", sound(5, "input_features_mask"),
            text_config=QWEN2, audio_config={**HEARING, "model_type": "audioflamingo3_encoder"}),
    hearing("qwen2_5_omni, sound and image", "Qwen2_5OmniThinkerForConditionalGeneration", image_and_sound,
            text_config={**DECODER, "rope_parameters": MROPE}, vision_config=PATCHES,
            audio_config={**HEARING, "n_window": 10, "output_dim": 32}, **OMNI),
    dataclasses.replace(next(row for row in ZOO if row.name == "qwen2_vl"), name="qwen2_vl, image and video",
                        make=image_and_video),
    vlm("llava_next", "LlavaNextForConditionalGeneration", tiles, SIZES, vision_config=CLIP, vision_feature_layer=-1,
        text_config={**LLAMA, "max_position_embeddings": 128}, image_grid_pinpoints=[[48, 48]]),
    vlm("mistral3", "Mistral3ForConditionalGeneration", with_sizes, SIZES, vision_feature_layer=-1,
        text_config={**DECODER, "model_type": "mistral", "head_dim": 8}, spatial_merge_size=2,
        vision_config={**SIGHT, "model_type": "pixtral", "image_size": 32, "head_dim": 8}),
    vlm("gemma4", "Gemma4ForConditionalGeneration", patches_with_places, SIZES, audio_config=None,
        text_config={**DECODER, **SLIDING, "global_head_dim": 8, "vocab_size_per_layer_input": 99,
                     "hidden_size_per_layer_input": 8, "num_kv_shared_layers": 0},
        vision_config={"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "num_key_value_heads": 3,
                       "head_dim": 8, "intermediate_size": 40, "patch_size": 8, "pooling_kernel_size": 3,
                       "position_embedding_size": 16},
        video_token_id=VIDEO, audio_token_id=95, boi_token_id=START, eoi_token_id=END),
    vlm("qwen3_5", "Qwen3_5ForConditionalGeneration", grids, SIZES, video_token_id=VIDEO,
        text_config={**DECODER, "rope_parameters": {**MROPE, "partial_rotary_factor": 1.0}, "head_dim": 8,
                     "linear_key_head_dim": 8, "linear_value_head_dim": 8, "linear_num_key_heads": 2,
                     "linear_num_value_heads": 4, "layer_types": ["linear_attention", "full_attention"]},
        vision_config={**PATCHES, "num_position_embeddings": 36}, vision_start_token_id=START,
        vision_end_token_id=END),
    vlm("lfm2_vl", "Lfm2VlForConditionalGeneration", packed_patches, SIZES, downsample_factor=2,
        projector_hidden_size=32,
        text_config={"model_type": "lfm2", **DECODER, "layer_types": ["conv", "full_attention"], "block_ff_dim": 40,
                     "conv_L_cache": 3},
        vision_config={"model_type": "siglip2_vision_model", **SIGHT, "num_patches": 16, "vision_use_head": False}),
    vlm("instructblip", "InstructBlipForConditionalGeneration", instruction, SIZES, text_config=OPT,
        vision_config=SIGHT, num_query_tokens=5, qformer_config=QFORMER),
    vlm("mllama", "MllamaForConditionalGeneration", across, SIZES,
        text_config={**DECODER, "num_hidden_layers": 3, "cross_attention_layers": [1],
                     "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}},
        vision_config={"hidden_size": 24, "num_hidden_layers": 2, "num_global_layers": 1, "attention_heads": 3,
                       "intermediate_size": 40, "image_size": 24, "patch_size": 8, "max_num_tiles": 2,
                       "vision_output_dim": 48, "intermediate_layers_indices": [0],
                       "supported_aspect_ratios": [[1, 1], [1, 2], [2, 1]]}),
    Row("kosmos2", "multimodal", "Kosmos2ForConditionalGeneration", kosmos2, with_places, SIZES),
]  # fmt: skip


def built(row: Row) -> Any:
    """The model; a gate that lets no image through would show nothing."""
    model, _ = row.build()
    for name, weight in model.named_parameters():
        if "gate" in name and weight.numel() == 1:
            weight.data.fill_(0.7)
    return model


def generate_inputs(row: Row, which: int = 0) -> Inputs:
    return {name: value for name, value in row.inputs(which).items() if name != "position_ids"}


def first_row(inputs: Inputs) -> Inputs:
    """The first prompt, with its share of everything else."""
    rows = len(inputs["input_ids"])
    return {name: value[: len(value) // rows] for name, value in inputs.items()}


def padded_on_the_left(inputs: Inputs) -> Inputs:
    """The first prompt two tokens shorter, with padding before it."""
    shape = inputs["input_ids"].shape
    moved = dict(inputs)
    for name, value in inputs.items():
        if value.shape == shape:
            moved[name] = value.clone()
            moved[name][0] = torch.cat([torch.zeros_like(value[0, :2]), value[0, :-2]])
    mask = torch.ones_like(inputs["input_ids"])
    mask[0, :2] = 0
    return moved | {"attention_mask": mask}
