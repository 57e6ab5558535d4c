"""Patches of model code that a capture needs whatever its target: functions of transformers that loop over items in
Python, or that the recorder cannot see into. Each is replaced by tensor arithmetic that gives the same."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import CellType
from typing import Any

from ..symbolic.replaced_attributes import original, replaced_here
from .packed_items import audio_windows, merged_patches, merged_projection, packed_patches, time_slices, unshuffled
from .recurrences import mlstm_in_one_chunk, padded_without_asking, rwkv_attention
from .scans import associative_scan, linear_scan, not_exporting
from .vision_positions import resized_positions, rope_index, vision_position_ids, window_index


@contextmanager
def patched_models(classes: set[type]) -> Iterator[None]:
    """Installs the patches in the code of this model, for this thread. Code that is not loaded is left alone."""
    with ExitStack() as stack:
        for owner, name, factory in _wanted(classes):
            stack.enter_context(replaced_here(owner, name, factory))
        yield


def _innermost(method: Any) -> CellType:
    """Where the innermost decorator of a method keeps the function that it calls."""
    holder = method
    while hasattr(holder.__wrapped__, "__wrapped__"):
        holder = holder.__wrapped__
    cells = holder.__closure__ or ()
    return next(cell for cell in cells if original(cell, "cell_contents") is holder.__wrapped__)


def _wanted(classes: set[type]) -> Iterator[tuple[Any, str, Callable[[Any], Any]]]:
    masks = sys.modules.get("transformers.masking_utils")
    if masks is not None and hasattr(masks, "_vmap_expansion_sdpa"):
        yield masks, "_vmap_expansion_sdpa", _broadcast_mask
    caches = sys.modules.get("transformers.cache_utils")
    if caches is not None and hasattr(caches, "LinearAttentionLayer"):
        yield caches.LinearAttentionLayer, "update_conv_state", padded_without_asking
    for scope in _modules_of(classes):
        for name, (home, factory) in _FUNCTIONS.items():
            found = vars(scope).get(name)
            if getattr(found, "__module__", "").startswith(home):
                yield scope, name, factory
    for cls in classes:
        if cls.__name__ in _ROPE_INDEX:
            yield cls, "get_rope_index", rope_index
        if cls.__name__ in _METHODS:
            yield cls, *_METHODS[cls.__name__]
        if cls.__name__ in _DECORATED:
            name, factory = _DECORATED[cls.__name__]
            yield _innermost(getattr(cls, name)), "cell_contents", factory
    yield from _scans(_modules_of(classes))


def _modules_of(classes: set[type]) -> list[Any]:
    """Where the classes are defined; code that was run without being imported has no module."""
    names = {cls.__module__ for cls in classes}
    return [sys.modules[name] for name in names if name in sys.modules]


def _scans(scopes: list[Any]) -> Iterator[tuple[Any, str, Callable[[Any], Any]]]:
    recurrent = [scope for scope in scopes if hasattr(scope, "mamba_selective_scan")]
    if not recurrent:
        return
    home = importlib.import_module("torch._higher_order_ops.associative_scan")  # the package has a function so named
    yield home, "associative_scan", associative_scan
    for module in recurrent:
        if hasattr(module, "is_torchdynamo_exporting"):
            yield module, "is_torchdynamo_exporting", not_exporting


def _broadcast_mask(_original: Any) -> Callable[..., Any]:
    """torch.vmap calls higher-order operators that know no kernel for the recorder's dispatch key. Mask functions work
    on indices element by element, so that indices which broadcast give the same mask."""

    def expansion(mask_function: Callable[..., Any]) -> Callable[..., Any]:
        def mask(*indices: Any) -> Any:
            sizes = [index.shape[0] for index in indices]
            shapes = [[-1 if axis == own else 1 for axis in range(len(indices))] for own in range(len(indices))]
            spread = [index.reshape(shape) for index, shape in zip(indices, shapes, strict=True)]
            return mask_function(*spread).expand(sizes)

        return mask

    return expansion


# Free functions, where model code imported them: the module that they come from, and what replaces them.
_FUNCTIONS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "get_vision_position_ids": ("transformers.vision_utils", vision_position_ids),
    "get_vision_window_index": ("transformers.vision_utils", window_index),
    "get_audio_cu_seqlens": ("transformers.models.qwen3_", audio_windows),
    "rwkv_linear_attention_cpu": ("transformers.models.rwkv", rwkv_attention),
}
# Methods that go through images or time in Python.
_METHODS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "Ernie4_5_VLMoeVariableResolutionResamplerModel": ("_temporal_slicing", time_slices),
    "Mistral3PatchMerger": ("forward", merged_patches),
    "PaddleOCRProjector": ("forward", merged_projection),
    "RecurrentGemmaRglru": ("_rnn_scan", linear_scan),
    "Siglip2VisionEmbeddings": ("resize_positional_embeddings", resized_positions),
    "VideoLlama3VisionModel": ("pixel_unshuffle", unshuffled),
    "xLSTMBackend": ("forward", mlstm_in_one_chunk),
}
# The same under decorators of transformers, which stay in place.
_DECORATED: dict[str, tuple[str, Callable[[Any], Any]]] = {"PixtralVisionModel": ("forward", packed_patches)}
# Models whose get_rope_index is the one of Qwen2-VL, up to how they count time.
_ROPE_INDEX = frozenset(
    (
        "CohereCompassModel",
        "Cosmos3OmniModel",
        "Ernie4_5_VLMoeModel",
        "Glm46VModel",
        "Glm4vModel",
        "Glm4vMoeModel",
        "GlmOcrModel",
        "PaddleOCRVLModel",
        "Qwen2VLModel",
        "Qwen2_5_VLModel",
        "Qwen3VLModel",
        "Qwen3VLMoeModel",
        "Qwen3_5Model",
        "Qwen3_5MoeModel",
    )
)
