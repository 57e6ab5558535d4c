"""Segmentation, matting and depth."""

from __future__ import annotations

from .images import fixed_pixels, pixels
from .row import BATCHES, IMAGES, Draw, Inputs, Row, Size
from .vision import VIT

SEGFORMER = {
    "hidden_sizes": [8, 16, 16, 32],
    "depths": [1, 1, 1, 1],
    "num_attention_heads": [1, 2, 2, 4],
    "decoder_hidden_size": 24,
    "num_labels": 6,
}
# Swin shrinks its windows for good when an image is too small for them, and pads where a window
# does not fit: with windows of 2 and sides of 3, 5 and 7 times 32 all sizes take the same way.
ODD_IMAGES = (
    Size(2, height=96, width=160),
    Size(3, height=160, width=224),
    Size(4, height=224, width=96),
)
SWIN = {
    "model_type": "swin",
    "embed_dim": 8,
    "depths": [1, 1, 1, 1],
    "num_heads": [1, 1, 2, 2],
    "window_size": 2,
    "out_features": ["stage1", "stage2", "stage3", "stage4"],
}
CONVNEXT = {
    "model_type": "convnext",
    "hidden_sizes": [8, 12, 16, 24],
    "depths": [1, 1, 1, 1],
    "num_stages": 4,
    "out_features": ["stage1", "stage2", "stage3", "stage4"],
}
DINO = {
    **VIT,
    "model_type": "dinov2",
    "mlp_ratio": 2,
    "num_hidden_layers": 4,
    "out_features": ["stage1", "stage2", "stage3", "stage4"],
    "reshape_hidden_states": False,
}
DEPTH = {"backbone_config": DINO, "patch_size": 8, "neck_hidden_sizes": [8, 12, 16, 24],
         "fusion_hidden_size": 16}

SAM_PARTS = {
    "prompt_encoder_config": {"hidden_size": 32, "image_size": 48, "patch_size": 8,
                              "mask_input_channels": 4},
    "mask_decoder_config": {"hidden_size": 32, "mlp_dim": 40, "num_hidden_layers": 2,
                            "num_attention_heads": 4, "iou_head_hidden_dim": 24,
                            "attention_downsample_rate": 2},
}


def points(draw: Draw) -> Inputs:
    """Images and, for each, two prompts of `target` clicks on and off the object."""
    side = draw.config.prompt_encoder_config.image_size
    batch, clicks = draw.size.batch, draw.size.target
    return {
        "pixel_values": draw.picture(batch, 3, side, side),
        "input_points": draw.uniform(batch, 2, clicks, 2) * side,
        "input_labels": draw.integers(0, 2, batch, 2, clicks),
    }


def segmenter(name: str, model_class: str, sizes=IMAGES, **config) -> Row:
    return Row(name, "segmentation", model_class, {"num_labels": 6, **config}, pixels, sizes)


ROWS = [
    segmenter("segformer", "SegformerForSemanticSegmentation", **SEGFORMER),
    segmenter("glpn", "GLPNForDepthEstimation", **{**SEGFORMER, "decoder_hidden_size": 16}),
    segmenter("upernet", "UperNetForSemanticSegmentation", backbone_config=CONVNEXT,
              hidden_size=16, auxiliary_in_channels=16, auxiliary_channels=12),
    segmenter("maskformer", "MaskFormerForInstanceSegmentation", ODD_IMAGES,
              backbone_config=SWIN,
              decoder_config={"model_type": "detr", "d_model": 32, "encoder_layers": 2,
                              "decoder_layers": 2, "encoder_attention_heads": 4,
                              "decoder_attention_heads": 4, "encoder_ffn_dim": 40,
                              "decoder_ffn_dim": 40, "num_queries": 9},
              mask_feature_size=32, fpn_feature_size=32),
    segmenter("mask2former", "Mask2FormerForUniversalSegmentation", ODD_IMAGES,
              backbone_config=SWIN,
              hidden_dim=32, feature_size=32, mask_feature_size=32, encoder_feedforward_dim=40,
              dim_feedforward=40, encoder_layers=2, decoder_layers=2, num_attention_heads=4,
              num_queries=9),
    segmenter("depth_anything", "DepthAnythingForDepthEstimation", reassemble_hidden_size=32,
              **DEPTH),
    segmenter("zoedepth", "ZoeDepthForDepthEstimation", bottleneck_features=16,
              num_out_features=[8, 8, 8, 8], num_relative_features=8, bin_embedding_dim=16,
              patch_transformer_hidden_size=16, patch_transformer_intermediate_size=24,
              patch_transformer_num_attention_heads=2, num_patch_transformer_layers=1,
              bin_configurations=[{"name": "nyu", "n_bins": 10, "min_depth": 0.001,
                                   "max_depth": 10.0}],
              backbone=None, **DEPTH),
    segmenter("mobilevit for segmentation", "MobileViTForSemanticSegmentation", ODD_IMAGES,
              hidden_sizes=[16, 20, 24], neck_hidden_sizes=[8, 8, 12, 16, 20, 24, 32],
              num_attention_heads=4, patch_size=2, aspp_out_channels=16),
    Row("dpt", "segmentation", "DPTForSemanticSegmentation",
        {**VIT, "num_hidden_layers": 4, "backbone_out_indices": [0, 1, 2, 3], "is_hybrid": False,
         "neck_hidden_sizes": [8, 12, 16, 24], "fusion_hidden_size": 16, "backbone_config": None},
        fixed_pixels, BATCHES),
    Row("eomt", "segmentation", "EomtForUniversalSegmentation",
        {**VIT, "num_register_tokens": 3, "num_queries": 9, "num_blocks": 1, "mlp_ratio": 2},
        fixed_pixels, BATCHES),
    Row("vitmatte", "segmentation", "VitMatteForImageMatting",
        {"backbone_config": {**VIT, "model_type": "vitdet", "num_channels": 4, "image_size": 48,
                             "patch_size": 16,
                             "out_features": ["stage2"], "mlp_ratio": 2},
         "hidden_size": 32, "fusion_hidden_sizes": [16, 8, 8, 8],
         "convstream_hidden_sizes": [8, 12, 16]},
        lambda draw: {"pixel_values": draw.picture(draw.size.batch, 4, 48, 48)}, BATCHES),
    Row("sam", "segmentation", "SamModel",
        {"vision_config": {"image_size": 48, "patch_size": 8, "hidden_size": 32,
                           "output_channels": 32, "num_hidden_layers": 2,
                           "num_attention_heads": 4, "mlp_dim": 40, "window_size": 4,
                           "global_attn_indexes": [1], "num_pos_feats": 16},
         **SAM_PARTS},
        points, IMAGES),
    Row("sam2", "segmentation", "Sam2Model",
        {"vision_config": {"backbone_config": {
                               "model_type": "sam2_hiera_det_model", "hidden_size": 8,
                               "image_size": [64, 64], "blocks_per_stage": [1, 1, 2, 1],
                               "embed_dim_per_stage": [8, 16, 32, 64],
                               "num_attention_heads_per_stage": [1, 1, 2, 2],
                               "window_size_per_stage": [8, 4, 4, 2],
                               "window_positional_embedding_background_size": [4, 4],
                               "global_attention_blocks": [3], "num_attention_heads": 1},
                           "backbone_channel_list": [64, 32, 16, 8],
                           "backbone_feature_sizes": [[16, 16], [8, 8], [4, 4]],
                           "fpn_hidden_size": 32},
         "prompt_encoder_config": {"hidden_size": 32, "image_size": 64, "patch_size": 16,
                                   "mask_input_channels": 8},
         "mask_decoder_config": SAM_PARTS["mask_decoder_config"]},
        points, IMAGES),
]
