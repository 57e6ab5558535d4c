"""Model code that a capture replaces: what, why, and the test that holds it.

The functions loop over items in Python, which pins how many there are, or call what the recorder cannot see into. Each
is replaced, in the code of the model and in this thread, by tensor arithmetic that gives the same. A kind of function
is known by its parameters, whatever it is called, and its replacement is kept where values agree with those of the
original. The rest is known by name: a test resolves each, so that a release of transformers that renames one fails
there and is not passed over."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from ..symbolic.replaced_attributes import replaced_here
from .agreement import where_values_agree
from .masks import broadcast_mask
from .packed_items import (
    audio_windows,
    merged_patches,
    merged_projection,
    packed_patches,
    time_slices,
    unshuffled,
)
from .places import Found, Kind, Patch, places_of_kinds, places_of_patch
from .recurrences import mlstm_in_one_chunk, padded_without_asking, rwkv_attention
from .scans import associative_scan, linear_scan, not_exporting
from .vision_positions import (
    resized_positions,
    rope_index,
    rope_index_by_tokens,
    rope_index_of_images,
    vision_position_ids,
    window_index,
)


def resolve(target: str) -> Any:
    """What a dotted name stands for; raises where it is gone."""
    parts = target.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for name in parts[cut:]:
            found = getattr(found, name)
        return found
    raise ModuleNotFoundError(target)


@contextmanager
def patched_models(classes: set[type]) -> Iterator[None]:
    """Installs the patches in the code of this model, for this thread. Code that is not loaded is left alone."""
    scopes = _modules_of(classes)
    bases = {base for cls in classes for base in cls.__mro__}
    with ExitStack() as stack:
        for patch in PATCHES:
            for owner, name in places_of_patch(patch, scopes, bases):
                stack.enter_context(replaced_here(owner, name, patch.factory))
        for owner, name, factory in places_of_kinds(KINDS, scopes, bases):
            stack.enter_context(replaced_here(owner, name, factory))
        yield


def _modules_of(classes: set[type]) -> list[Any]:
    """Where the classes are defined; code that was run without being imported has no module."""
    names = {cls.__module__ for cls in classes}
    return [sys.modules[name] for name in names if name in sys.modules]


def _of(model: str, name: str) -> str:
    return f"transformers.models.{model}.modeling_{model}.{name}"


_ITEMS = "it goes from image to image in Python"
_TOKENS = "it goes from token to token in Python"
KINDS = (
    Kind(
        "grid_thw, spatial_merge_size, include_temporal, kwargs",
        _ITEMS,
        "tests/symbolic/loops_test.py::test_positions_of_patches_are_those_of_transformers",
        where_values_agree(vision_position_ids),
    ),
    Kind(
        "grid_thw, spatial_merge_size, window_size, patch_size, kwargs",
        _ITEMS,
        "tests/symbolic/loops_test.py::test_windows_of_patches_are_those_of_transformers",
        where_values_agree(window_index),
    ),
    Kind(
        "chunk_lengths, feature_lens, n_window_infer, n_window, kwargs",
        "it goes from sound to sound in Python",
        "tests/patches/patches_test.py::test_windows_of_sounds_are_those_of_transformers",
        where_values_agree(audio_windows),
    ),
    Kind(
        "time_decay, time_first, key, value, state, return_state",
        _TOKENS,
        "tests/generation/generation_states_test.py::test_an_average_over_time_needs_no_loop",
        where_values_agree(rwkv_attention),
    ),
    Kind(
        "self, input_ids, mm_token_type_ids, image_grid_thw, video_grid_thw, ...",
        "it goes from sample to sample and from image to image in Python",
        "tests/symbolic/loops_test.py::test_positions_of_text_images_and_videos_are_those_of_transformers",
        where_values_agree(rope_index),
    ),
    Kind(
        "self, input_ids, image_grid_thw, video_grid_thw, attention_mask, use_audio_in_video, audio_seqlens, ...",
        "it goes from sample to sample and from image to image in Python",
        "tests/symbolic/loops_test.py::test_positions_beside_sounds_are_those_of_transformers",
        where_values_agree(rope_index_by_tokens),
    ),
    Kind(
        "self, input_ids, mm_token_type_ids, image_grid_thw, attention_mask, ...",
        "it goes from sample to sample and from image to image in Python",
        "tests/symbolic/loops_test.py::test_positions_in_lines_of_images_are_those_of_transformers",
        where_values_agree(rope_index_of_images),
    ),
    Kind(
        "positional_embeddings, spatial_shapes, max_length",
        _ITEMS,
        "tests/symbolic/loops_test.py::test_positions_resized_for_each_image_are_those_of_transformers",
        where_values_agree(resized_positions),
    ),
    Kind(
        "self, hidden_states, grid_thw, merge_sizes",
        _ITEMS,
        "tests/patches/patches_test.py::test_the_middle_of_each_block_is_that_of_transformers",
        where_values_agree(unshuffled),
    ),
    Kind(
        "self, hidden_states, recurrent_gate, reset, recurrent_states, acc_dtype",
        _TOKENS,
        "tests/patches/patches_test.py::test_a_linear_recurrence_is_that_of_transformers",
        where_values_agree(linear_scan),
    ),
    Kind(
        "self, query, key, value, igate, fgate, c_initial, n_initial, m_initial, ...",
        "it goes from chunk to chunk, and through the rest from token to token",
        "tests/generation/generation_states_test.py::test_chunks_of_a_text_are_one_chunk",
        where_values_agree(mlstm_in_one_chunk),
    ),
)

PATCHES = (
    Patch(
        "transformers.masking_utils._vmap_expansion_sdpa",
        "torch.vmap has no kernel for the recorder's dispatch key",
        "tests/patches/patches_test.py::test_a_mask_by_broadcasting_is_the_one_by_vmap",
        broadcast_mask,
        Found.AT_HOME,
    ),
    Patch(
        "transformers.cache_utils.LinearAttentionLayer.update_conv_state",
        "it asks whether a prompt is shorter than a convolution is wide",
        "tests/generation/generation_states_test.py::test_a_prompt_may_be_shorter_than_a_convolution_is_wide",
        padded_without_asking,
        Found.AT_HOME,
        parameters="self, conv_states, state_idx, conv_kernel_size",  # models of transformers 5.13 pad
    ),
    Patch(
        _of("ernie4_5_vl_moe", "Ernie4_5_VLMoeVariableResolutionResamplerModel._temporal_slicing"),
        _ITEMS,
        "tests/patches/patches_test.py::test_frames_side_by_side_are_those_of_transformers",
        time_slices,
        Found.IN_CLASS,
    ),
    Patch(
        _of("mistral3", "Mistral3PatchMerger.forward"),
        _ITEMS,
        "tests/patches/patches_test.py::test_merged_patches_are_those_of_transformers",
        merged_patches,
        Found.IN_CLASS,
    ),
    Patch(
        _of("paddleocr_vl", "PaddleOCRProjector.forward"),
        _ITEMS,
        "tests/patches/patches_test.py::test_blocks_of_patches_are_projected_as_in_transformers",
        merged_projection,
        Found.IN_CLASS,
    ),
    Patch(
        _of("pixtral", "PixtralVisionModel.forward"),
        _ITEMS,
        "tests/patches/patches_test.py::test_packed_images_are_read_as_in_transformers",
        packed_patches,
        Found.UNDER_DECORATORS,
    ),
    Patch(
        "torch._higher_order_ops.associative_scan.associative_scan",
        "the recorder cannot see into a higher-order operator",
        "tests/symbolic/loops_test.py::test_a_scan_in_doubling_steps_is_the_recurrence",
        associative_scan,
        Found.IN_SCANS,
    ),
    Patch(
        _of("mamba", "is_torchdynamo_exporting"),
        "models avoid the scan for other exporters, and go from token to token instead",
        "tests/patches/patches_test.py::test_a_scan_leaves_the_length_of_the_text_open",
        not_exporting,
        Found.IN_SCANS,
    ),
)


def table() -> str:
    """The rows as docs/ARCHITECTURE.md has them: `python -m modelport.patches.registry` prints them."""
    rows = ["| what | why | found |", "|---|---|---|"]
    rows += [f"| `({kind.parameters})` | {kind.why} | by its parameters |" for kind in KINDS]
    rows += [f"| `{_short(patch.target)}` | {patch.why} | {patch.found.value} |" for patch in PATCHES]
    return "\n".join(rows) + "\n"


def _short(target: str) -> str:
    return ".".join(part for part in target.split(".")[-3:] if not part.startswith("modeling_"))


if __name__ == "__main__":
    print(table(), end="")
