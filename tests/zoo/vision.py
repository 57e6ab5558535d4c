"""Image encoders and classifiers."""

from __future__ import annotations

from .images import fixed_pixels, pixels
from .row import BATCHES, IMAGES, SIZES, Row, Size

# Of these the patch grid is 5 by 5, so that the patches do not equal a width.
VIT = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 40,
    "image_size": 40,
    "patch_size": 8,
    "num_channels": 3,
    "num_labels": 6,
}


def vit(name: str, model_class: str, **overrides) -> Row:
    return Row(name, "vision", model_class, {**VIT, **overrides}, fixed_pixels, BATCHES)


def convnet(name: str, model_class: str, **config) -> Row:
    return Row(name, "vision", model_class, {"num_labels": 6, **config}, pixels, IMAGES)


SWIN = {"embed_dim": 16, "depths": [1, 2], "num_heads": [2, 4], "window_size": 5,
        "image_size": 64, "patch_size": 4, "num_labels": 6, "encoder_stride": 8}
FOUR = {"hidden_sizes": [8, 12, 16, 24], "depths": [1, 1, 1, 1]}

ROWS = [
    vit("vit", "ViTForImageClassification"),
    vit("deit", "DeiTForImageClassificationWithTeacher"),
    vit("beit", "BeitForImageClassification", use_relative_position_bias=True,
        layer_scale_init_value=0.1),
    vit("data2vec_vision", "Data2VecVisionModel", use_shared_relative_position_bias=True),
    vit("dinov2", "Dinov2ForImageClassification", mlp_ratio=2),
    vit("dinov2_with_registers", "Dinov2WithRegistersModel", mlp_ratio=2, num_register_tokens=3),
    vit("dinov3_vit", "DINOv3ViTModel", num_register_tokens=3),
    vit("vit_msn", "ViTMSNModel"),
    vit("ijepa", "IJepaModel"),
    vit("vitdet", "VitDetModel", window_size=2, window_block_indices=[0],
        use_relative_position_embeddings=True, residual_block_indices=[1],
        pretrain_image_size=40),
    vit("mlcd_vision_model", "MLCDVisionModel", num_key_value_groups=1),
    vit("siglip_vision_model", "SiglipVisionModel"),
    vit("clip_vision_model", "CLIPVisionModelWithProjection", projection_dim=24),
    Row("dinov2 of any image size", "vision", "Dinov2Model", {**VIT, "mlp_ratio": 2}, pixels, IMAGES),
    convnet("swin", "SwinForImageClassification", **SWIN),
    convnet("swinv2", "Swinv2ForImageClassification", **SWIN),
    Row("swin2sr", "vision", "Swin2SRForImageSuperResolution",
        {"embed_dim": 16, "depths": [1, 1], "num_heads": [2, 2], "window_size": 4,
         "image_size": 32, "patch_size": 1, "upscale": 2},
        pixels,
        (Size(2, height=16, width=24), Size(4, height=24, width=32), Size(5, height=20, width=16))),
    convnet("donut_swin", "DonutSwinModel", **SWIN),
    convnet("convnext", "ConvNextForImageClassification", **FOUR, num_stages=4),
    convnet("convnextv2", "ConvNextV2ForImageClassification", **FOUR, num_stages=4),
    convnet("dinov3_convnext", "DINOv3ConvNextModel", **FOUR),
    convnet("resnet", "ResNetForImageClassification", embedding_size=8, **FOUR),
    convnet("regnet", "RegNetForImageClassification", embedding_size=8, groups_width=4, **FOUR),
    convnet("bit", "BitForImageClassification", embedding_size=8, num_groups=4,
            hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1]),
    convnet("mobilenet_v1", "MobileNetV1ForImageClassification", depth_multiplier=0.25,
            min_depth=8, tf_padding=False),
    convnet("mobilenet_v2", "MobileNetV2ForImageClassification", depth_multiplier=0.25,
            min_depth=8, tf_padding=True),
    # The last grid must part into patches of 2, at all sizes or at none.
    Row("mobilevit", "vision", "MobileViTForImageClassification",
        {"hidden_sizes": [16, 20, 24], "neck_hidden_sizes": [8, 8, 12, 16, 20, 24, 32],
         "num_attention_heads": 4, "patch_size": 2, "num_labels": 6},
        pixels,
        (Size(2, height=64, width=128), Size(4, height=128, width=192),
         Size(5, height=128, width=64))),
    convnet("mobilevitv2", "MobileViTV2ForImageClassification", width_multiplier=0.25,
            n_attn_blocks=[1, 1, 1], base_attn_unit_dims=[64, 96, 128]),
    convnet("efficientnet", "EfficientNetForImageClassification", width_coefficient=0.25,
            depth_coefficient=0.25, hidden_dim=320, depth_divisor=4,
            kernel_sizes=[3, 5], in_channels=[32, 16], out_channels=[16, 24], strides=[1, 2],
            num_block_repeats=[1, 1], expand_ratios=[1, 4], depthwise_padding=[]),
    convnet("poolformer", "PoolFormerForImageClassification", **FOUR),
    Row("pvt", "vision", "PvtForImageClassification",
        {"hidden_sizes": [8, 16, 16, 32], "depths": [1, 1, 1, 1],
         "num_attention_heads": [1, 2, 2, 4], "image_size": 64, "num_labels": 6},
        fixed_pixels, BATCHES),
    convnet("pvt_v2", "PvtV2ForImageClassification", hidden_sizes=[8, 16, 16, 32],
            depths=[1, 1, 1, 1], num_attention_heads=[1, 2, 2, 4], image_size=64),
    convnet("cvt", "CvtForImageClassification", embed_dim=[8, 16, 24], num_heads=[1, 2, 3],
            depth=[1, 2, 3]),
    convnet("focalnet", "FocalNetForImageClassification", embed_dim=8, depths=[1, 1],
            focal_levels=[1, 2], focal_windows=[3, 3], image_size=64, patch_size=4,
            hidden_sizes=[8, 16]),
    convnet("swiftformer", "SwiftFormerForImageClassification", embed_dims=[8, 12, 16, 24],
            depths=[1, 1, 1, 1], mlp_ratio=2),
    convnet("hgnet_v2", "HGNetV2ForImageClassification", stem_channels=[3, 8, 8],
            hidden_sizes=[8, 12, 16, 24], embedding_size=8,
            stage_in_channels=[8, 8, 12, 16], stage_mid_channels=[8, 8, 8, 8],
            stage_out_channels=[8, 12, 16, 24], stage_num_blocks=[1, 1, 1, 1],
            stage_numb_of_layers=[2, 2, 2, 2]),
    convnet("textnet", "TextNetForImageClassification", stem_out_channels=8,
            hidden_sizes=[8, 8, 12, 16, 24]),
    Row("levit", "vision", "LevitForImageClassification",
        {"image_size": 96, "hidden_sizes": [16, 24, 32], "num_attention_heads": [2, 2, 2],
         "depths": [1, 1, 1], "key_dim": [8, 8, 8], "num_labels": 6},
        fixed_pixels, BATCHES),
    Row("hiera", "vision", "HieraForImageClassification",
        {"embed_dim": 8, "image_size": [64, 64], "depths": [1, 1, 1, 1],
         "num_heads": [1, 1, 2, 2], "num_labels": 6},
        fixed_pixels, BATCHES),
    Row("imagegpt", "vision", "ImageGPTModel",
        {"vocab_size": 99, "n_positions": 64, "n_embd": 32, "n_layer": 2, "n_head": 4},
        lambda draw: {"input_ids": draw.integers(0, 98, draw.size.batch, draw.size.seq)},
        SIZES),
]
