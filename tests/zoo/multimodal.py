"""Text and images (or sound) in one model: dual encoders, fused encoders, documents."""

from __future__ import annotations

import torch

from .encoders import TINY as TEXT
from .images import side
from .row import Draw, Inputs, Make, Row, Size
from .text import draw_ids, padding

SIZES = (
    Size(2, seq=7, target=6),
    Size(4, seq=11, target=8),
    Size(5, seq=6, target=3),
)
# For models that loop over the images: their number belongs to the program.
LENGTHS = (Size(2, seq=7), Size(2, seq=11), Size(2, seq=6))

WORDS = {**TEXT, "projection_dim": 20, "bos_token_id": 1, "eos_token_id": 2}
# Narrower than the text, and a grid of 3 by 3 patches.
SIGHT = {
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 40,
    "image_size": 24,
    "patch_size": 8,
    "projection_dim": 20,
}


def captions(draw: Draw, count: int) -> Inputs:
    seq = draw.size.seq
    vocab = draw.config.get_text_config().vocab_size
    return {
        "input_ids": draw.integers(5, vocab, count, seq),
        "attention_mask": padding(count, seq, left=False),
    }


def images_and_texts(draw: Draw) -> Inputs:
    """As many texts as `target`, which need not be as many as there are images."""
    size = (draw.size.batch, 3, *side(draw.config))
    return {**captions(draw, draw.size.target), "pixel_values": draw.picture(*size)}


def queries_for_images(draw: Draw) -> Inputs:
    """For each image the same number of texts, one after the other."""
    size = (draw.size.batch, 3, *side(draw.config))
    texts = captions(draw, draw.size.batch * 3)
    return {**texts, "pixel_values": draw.picture(*size)}


def captioned_images(draw: Draw) -> Inputs:
    """A text for each image."""
    size = (draw.size.batch, 3, *side(draw.config))
    return {**captions(draw, draw.size.batch), "pixel_values": draw.picture(*size)}


def boxes(draw: Draw, seq: int) -> torch.Tensor:
    """A box on the page for each token: left, top, right, bottom, in that order."""
    corners = draw.integers(0, 50, draw.size.batch, seq, 2)
    extent = draw.integers(1, 50, draw.size.batch, seq, 2)
    return torch.cat([corners, corners + extent], dim=-1)


def page(draw: Draw) -> Inputs:
    return {**captions(draw, draw.size.batch), "bbox": boxes(draw, draw.size.seq)}


def page_with_image(draw: Draw) -> Inputs:
    size = draw.config.input_size
    return {**page(draw), "pixel_values": draw.picture(draw.size.batch, 3, size, size)}


def regions(prefix: str, width: str) -> Make:
    """Texts and `target` regions of the image, as a detector would have described them."""

    def make(draw: Draw) -> Inputs:
        batch, count = draw.size.batch, draw.size.target
        features = draw.normal(batch, count, getattr(draw.config, width))
        return {**captions(draw, batch), prefix: features}

    return make


def regions_with_places(draw: Draw) -> Inputs:
    places = draw.uniform(draw.size.batch, draw.size.target, 4)
    return {**regions("visual_feats", "visual_feat_dim")(draw), "visual_pos": places}


def dual(
    name: str, model_class: str, words=None, sight=None, make: Make = images_and_texts, **config
) -> Row:
    config = {
        "text_config": {**WORDS, **(words or {})},
        "vision_config": {**SIGHT, **(sight or {})},
        "projection_dim": 20,
        **config,
    }
    return Row(name, "multimodal", model_class, config, make, SIZES)


def fused(name: str, model_class: str, make: Make, **config) -> Row:
    return Row(name, "multimodal", model_class, {**TEXT, **config}, make, SIZES)


ROWS = [
    dual("clip", "CLIPModel"),
    dual("siglip", "SiglipModel", {"projection_size": 24}),
    dual("chinese_clip", "ChineseCLIPModel"),
    dual("altclip", "AltCLIPModel", {"project_dim": 20, "pad_token_id": 1}),
    dual("metaclip_2", "MetaClip2Model"),
    dual("blip", "BlipModel", {"is_decoder": False, "encoder_hidden_size": 24}),
    dual("blip for retrieval", "BlipForImageTextRetrieval", {"encoder_hidden_size": 24},
         make=captioned_images, image_text_hidden_size=20),
    dual("owlvit", "OwlViTForObjectDetection", make=queries_for_images, projection_dim=32),
    dual("owlv2", "Owlv2ForObjectDetection", make=queries_for_images, projection_dim=32),
    dual("groupvit", "GroupViTModel",
         sight={"depths": [1, 1, 1], "num_group_tokens": [6, 4, 0],
                "num_output_groups": [6, 4, 4], "hidden_size": 24, "num_hidden_layers": 3},
         projection_intermediate_dim=40),
    dual("clipseg", "CLIPSegForImageSegmentation", make=captioned_images,
         sight={"num_hidden_layers": 3, "image_size": 24}, extract_layers=[0, 1, 2],
         reduce_dim=16, decoder_num_attention_heads=2, decoder_intermediate_size=20,
         conditional_layer=0),
    Row("flava", "multimodal", "FlavaModel",
        {"text_config": WORDS, "image_config": SIGHT,
         "multimodal_config": {"hidden_size": 32, "num_hidden_layers": 2,
                               "num_attention_heads": 4, "intermediate_size": 40},
         "hidden_size": 32, "projection_dim": 20},
        captioned_images, SIZES),
    # The patches of each image are resized and drawn one image after the other; the answer does not
    # depend on their order.
    Row("vilt", "multimodal", "ViltForQuestionAnswering",
        {**TEXT, "image_size": 24, "patch_size": 8, "max_image_length": -1},
        captioned_images, LENGTHS),
    fused("visual_bert", "VisualBertModel", regions("visual_embeds", "visual_embedding_dim"),
          visual_embedding_dim=20),
    fused("lxmert", "LxmertModel", regions_with_places, l_layers=2, x_layers=1, r_layers=1,
          visual_feat_dim=20, visual_pos_dim=4),
    fused("layoutlm", "LayoutLMForTokenClassification", page, max_2d_position_embeddings=128),
    fused("lilt", "LiltForTokenClassification", page, max_2d_position_embeddings=128,
          channel_shrink_ratio=2, hidden_size=48, pad_token_id=1),
    fused("layoutlmv3", "LayoutLMv3ForTokenClassification", page_with_image,
          max_2d_position_embeddings=128, coordinate_size=4, shape_size=8, input_size=24,
          patch_size=8, rel_pos_bins=8, rel_2d_pos_bins=8, max_rel_pos=16, max_rel_2d_pos=16,
          pad_token_id=1),
    Row("bridgetower", "multimodal", "BridgeTowerModel",
        {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
         "text_config": {**TEXT, "hidden_size": 64, "pad_token_id": 1},
         "vision_config": {**SIGHT, "hidden_size": 64}},
        lambda draw: {**captioned_images(draw),
                      "pixel_mask": torch.ones(draw.size.batch, 24, 24, dtype=torch.int64)},
        SIZES),
    Row("clap", "multimodal", "ClapModel",
        {"projection_dim": 20, "text_config": {**WORDS, "pad_token_id": 1},
         "audio_config": {"window_size": 4, "num_mel_bins": 16, "spec_size": 64,
                          "patch_size": 4, "patch_stride": [4, 4], "hidden_size": 32,
                          "patch_embeds_hidden_size": 16, "depths": [1, 1],
                          "num_attention_heads": [2, 2], "num_hidden_layers": 2,
                          "enable_fusion": False, "projection_dim": 20}},
        lambda draw: {**captions(draw, draw.size.target),
                      "input_features": draw.normal(draw.size.batch, 1, 256, 16)},
        SIZES),
    Row("vision_text_dual_encoder", "multimodal", "VisionTextDualEncoderModel",
        {"text_config": {**WORDS, "model_type": "bert"},
         "vision_config": {**SIGHT, "model_type": "vit"}, "projection_dim": 20},
        images_and_texts, SIZES),
    Row("vision_encoder_decoder", "multimodal", "VisionEncoderDecoderModel",
        {"encoder": {**SIGHT, "model_type": "vit"},
         "decoder": {"model_type": "trocr", "vocab_size": 99, "d_model": 32,
                     "decoder_layers": 2, "decoder_attention_heads": 4, "decoder_ffn_dim": 40,
                     "max_position_embeddings": 64, "cross_attention_hidden_size": 24,
                     "add_cross_attention": True, "is_decoder": True}},
        lambda draw: {"pixel_values": draw.picture(draw.size.batch, 3, 24, 24),
                      "decoder_input_ids": draw_ids(draw, draw.size.seq, 99)},
        SIZES),
]
