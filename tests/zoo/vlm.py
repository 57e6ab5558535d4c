"""Decoders that read images or sound among their tokens."""

from __future__ import annotations

import torch

from .decoders import TINY as DECODER
from .images import side
from .multimodal import LENGTHS, SIGHT
from .row import Draw, Inputs, Make, Row, Size
from .text import padding

SIZES = (Size(2, seq=7), Size(4, seq=11), Size(5, seq=6))

LLAMA = {**DECODER, "model_type": "llama"}
QWEN2 = {**DECODER, "model_type": "qwen2"}
CLIP = {**SIGHT, "model_type": "clip_vision_model"}
SIGLIP = {**SIGHT, "model_type": "siglip_vision_model"}

IMAGE, VIDEO, START, END = 3, 4, 5, 6  # token ids


def prompt(draw: Draw, tokens: int, lead: tuple[int, ...] = ()) -> Inputs:
    """The placeholders of one image a row, then `seq` tokens of text, padded on the right."""
    batch, seq = draw.size.batch, draw.size.seq
    head = torch.tensor([*lead, *[IMAGE] * tokens], dtype=torch.int64).repeat(batch, 1)
    text = draw.integers(END + 1, 99, batch, seq)
    mask = torch.cat([torch.ones_like(head), padding(batch, seq, left=False)], dim=1)
    return {"input_ids": torch.cat([head, text], dim=1), "attention_mask": mask}


def image_then_text(tokens: int) -> Make:
    def make(draw: Draw) -> Inputs:
        pixels = draw.picture(draw.size.batch, 3, *side(draw.config))
        return {**prompt(draw, tokens), "pixel_values": pixels}

    return make


def typed(tokens: int) -> Make:
    """As above, with the token types by which the model lets image tokens see each other."""

    def make(draw: Draw) -> Inputs:
        inputs = image_then_text(tokens)(draw)
        types = (inputs["input_ids"] == IMAGE).to(torch.int64)
        return {**inputs, "token_type_ids": types}

    return make


def image_list(tokens: int) -> Make:
    """Images on an axis of their own, of which there may be several in a row."""

    def make(draw: Draw) -> Inputs:
        inputs = image_then_text(tokens)(draw)
        return {**inputs, "pixel_values": inputs["pixel_values"][:, None]}

    return make


def patches(draw: Draw) -> Inputs:
    """Images of 4 by 6 patches, flattened, with their grids; positions in time, height, width."""
    vision, batch = draw.config.vision_config, draw.size.batch
    grid = (1, 4, 6)
    merge = vision.spatial_merge_size
    tokens = grid[1] * grid[2] // merge**2
    width = 3 * vision.temporal_patch_size * vision.patch_size**2
    inputs = prompt(draw, tokens, (START,))
    length = inputs["input_ids"].shape[1]
    return {
        **inputs,
        "position_ids": torch.arange(length).repeat(3, batch, 1),
        "pixel_values": draw.normal(batch * grid[1] * grid[2], width),
        "image_grid_thw": torch.tensor([grid]).repeat(batch, 1),
        "mm_token_type_ids": (inputs["input_ids"] == IMAGE).to(torch.int64),
    }


def vlm(name: str, model_class: str, make: Make, sizes=SIZES, **config) -> Row:
    config = {"image_token_id": IMAGE, "image_token_index": IMAGE, "pad_token_id": 0, **config}
    return Row(name, "multimodal", model_class, config, make, sizes)


def qwen(name: str, model_class: str, text, vision) -> Row:
    text = {**DECODER, "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0,
                                           "mrope_section": [2, 1, 1]}, **text}
    vision = {"depth": 2, "num_heads": 4, "patch_size": 4, "spatial_merge_size": 2,
              "temporal_patch_size": 2, **vision}
    return vlm(name, model_class, patches, LENGTHS, text_config=text, vision_config=vision,
               video_token_id=VIDEO, vision_start_token_id=START, vision_end_token_id=END)


ROWS = [
    vlm("llava", "LlavaForConditionalGeneration", image_then_text(9), LENGTHS, text_config=LLAMA,
        vision_config=CLIP, vision_feature_layer=-1, image_seq_length=9),
    vlm("vipllava", "VipLlavaForConditionalGeneration", image_then_text(9), text_config=LLAMA,
        vision_config=CLIP, vision_feature_layers=[0, -1], image_seq_length=9),
    vlm("paligemma", "PaliGemmaForConditionalGeneration", typed(9),
        text_config={**DECODER, "model_type": "gemma", "head_dim": 8}, vision_config=SIGLIP,
        projection_dim=32),
    vlm("gemma3", "Gemma3ForConditionalGeneration", typed(4),
        text_config={**DECODER, "model_type": "gemma3_text", "head_dim": 8,
                     "sliding_window": 4,
                     "layer_types": ["sliding_attention", "full_attention"]},
        vision_config={**SIGLIP, "image_size": 32}, mm_tokens_per_image=4),
    vlm("idefics3", "Idefics3ForConditionalGeneration", image_list(4), LENGTHS,
        text_config=LLAMA, vision_config={**SIGHT, "image_size": 32}, scale_factor=2),
    vlm("smolvlm", "SmolVLMForConditionalGeneration", image_list(4), LENGTHS,
        text_config=LLAMA, vision_config={**SIGHT, "image_size": 32}, scale_factor=2),
    vlm("internvl", "InternVLForConditionalGeneration", image_then_text(4), text_config=QWEN2,
        vision_config={**SIGHT, "image_size": [32, 32], "patch_size": [8, 8],
                       "use_absolute_position_embeddings": True},
        image_seq_length=4, downsample_ratio=0.5),
    vlm("aya_vision", "AyaVisionForConditionalGeneration", image_then_text(4),
        text_config={**DECODER, "model_type": "cohere2", "head_dim": 8, "sliding_window": 4,
                     "layer_types": ["sliding_attention", "full_attention"]},
        vision_config={**SIGLIP, "image_size": 32}, downsample_factor=2,
        adapter_layer_norm_eps=1e-6, vision_feature_layer=-1,
        vision_feature_select_strategy="full", alignment_intermediate_size=24),
    vlm("blip_2", "Blip2ForConditionalGeneration", image_then_text(5),
        text_config={**DECODER, "model_type": "opt", "ffn_dim": 40, "word_embed_proj_dim": 32},
        vision_config=SIGHT, num_query_tokens=5,
        qformer_config={"vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2,
                        "num_attention_heads": 4, "intermediate_size": 40,
                        "max_position_embeddings": 64, "encoder_hidden_size": 24}),
    vlm("git", "GitForCausalLM", image_then_text(0), vision_config=SIGHT, **DECODER),
    qwen("qwen2_vl", "Qwen2VLForConditionalGeneration", {},
         {"embed_dim": 32, "hidden_size": 32, "mlp_ratio": 2}),
    qwen("qwen2_5_vl", "Qwen2_5_VLForConditionalGeneration", {},
         {"hidden_size": 32, "out_hidden_size": 32, "intermediate_size": 40, "window_size": 16,
          "fullatt_block_indexes": [1]}),
    qwen("qwen3_vl", "Qwen3VLForConditionalGeneration", {"head_dim": 8},
         {"hidden_size": 32, "out_hidden_size": 32, "intermediate_size": 40,
          "num_position_embeddings": 36, "deepstack_visual_indexes": [0]}),
]
