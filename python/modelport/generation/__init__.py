"""Generative models in parts that run as they are: one graph for prefill and decode, encoders, caches with names."""

from .components import Components, components_for_generation
from .decompose import decompose_for_generation, decompose_multimodal, decompose_prefill_decode, is_multimodal

__all__ = [
    "Components",
    "components_for_generation",
    "decompose_for_generation",
    "decompose_multimodal",
    "decompose_prefill_decode",
    "is_multimodal",
]
