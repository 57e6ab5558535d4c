"""Object detection."""

from __future__ import annotations

from .images import fixed_pixels, masked_pixels, pixels
from .row import BATCHES, IMAGES, Make, Row

RESNET = {
    "model_type": "resnet",
    "embedding_size": 8,
    "hidden_sizes": [8, 12, 16, 24],
    "depths": [1, 1, 1, 1],
    "out_features": ["stage2", "stage3", "stage4"],
}
HGNET = {
    "model_type": "hgnet_v2",
    "stem_channels": [3, 8, 8],
    "stage_in_channels": [8, 8, 12, 16],
    "stage_mid_channels": [8, 8, 8, 8],
    "stage_out_channels": [8, 12, 16, 24],
    "stage_num_blocks": [1, 1, 1, 1],
    "stage_numb_of_layers": [2, 2, 2, 2],
    "hidden_sizes": [8, 12, 16, 24],
    "depths": [1, 1, 1, 1],
    "out_features": ["stage2", "stage3", "stage4"],
}

DETR = {
    "use_timm_backbone": False,
    "use_pretrained_backbone": False,
    "backbone": None,
    "backbone_config": RESNET,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 40,
    "decoder_ffn_dim": 40,
    "num_queries": 9,
    "num_labels": 6,
}

RT_DETR = {
    "backbone_config": {**RESNET, "model_type": "rt_detr_resnet"},
    "encoder_hidden_dim": 32,
    "encoder_in_channels": [12, 16, 24],
    "encoder_layers": 1,
    "encoder_ffn_dim": 40,
    "encoder_attention_heads": 4,
    "d_model": 32,
    "num_queries": 9,
    "decoder_in_channels": [32, 32, 32],
    "decoder_ffn_dim": 40,
    "decoder_layers": 2,
    "decoder_attention_heads": 4,
    "num_denoising": 0,
    "num_labels": 6,
}


def detr(name: str, model_class: str, make: Make = masked_pixels, **overrides) -> Row:
    return Row(name, "detection", model_class, {**DETR, **overrides}, make, IMAGES)


def rt_detr(name: str, model_class: str, **overrides) -> Row:
    return Row(name, "detection", model_class, {**RT_DETR, **overrides}, pixels, IMAGES)


ROWS = [
    detr("detr", "DetrForObjectDetection"),
    detr("conditional_detr", "ConditionalDetrForObjectDetection", pixels),
    detr("deformable_detr", "DeformableDetrForObjectDetection", num_feature_levels=3),
    detr("deformable_detr in two stages", "DeformableDetrForObjectDetection", pixels,
         num_feature_levels=3, two_stage=True, with_box_refine=True, two_stage_num_proposals=9),
    detr("dab_detr", "DabDetrForObjectDetection", hidden_size=32),
    detr("table_transformer", "TableTransformerForObjectDetection", pixels),
    rt_detr("rt_detr", "RTDetrForObjectDetection"),
    rt_detr("rt_detr_v2", "RTDetrV2ForObjectDetection"),
    rt_detr("d_fine", "DFineForObjectDetection", backbone_config=HGNET,
            decoder_n_points=[4, 4, 4]),
    Row("yolos", "detection", "YolosForObjectDetection",
        {"image_size": [40, 56], "patch_size": 8, "hidden_size": 32, "num_hidden_layers": 2,
         "num_attention_heads": 4, "intermediate_size": 40, "num_detection_tokens": 9,
         "num_labels": 6},
        fixed_pixels, BATCHES),
]
