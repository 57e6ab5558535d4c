"""Every name of transformers and torch whose code a capture replaces: what, why, and the test that holds it.

The functions loop over items in Python, which pins how many there are, or call what the recorder cannot see into. Each
is replaced, in the code of the model and in this thread, by tensor arithmetic that gives the same. A test resolves
every target, so that a release of transformers that renames one fails there and is not passed over."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from enum import Enum
from types import CellType
from typing import Any

from ..symbolic.replaced_attributes import Factory, original, replaced_here
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
from .recurrences import mlstm_in_one_chunk, padded_without_asking, rwkv_attention
from .scans import associative_scan, linear_scan, not_exporting
from .vision_positions import resized_positions, rope_index, vision_position_ids, window_index


class Found(Enum):
    """Where a target is replaced."""

    AT_HOME = "where it is defined"
    BY_IMPORT = "in modules of the model that imported it"
    IN_CLASS = "in classes of the model, and those that they inherit from"
    UNDER_DECORATORS = "in classes of the model, under decorators, which stay in place"
    BY_SIGNATURE = "in classes of the model that have a method of this name with these parameters"
    IN_SCANS = "where modules of the model have a selective scan"


@dataclasses.dataclass(frozen=True)
class Patch:
    """`targets` are dotted names of one thing: some models have copies of it."""

    targets: tuple[str, ...]
    why: str
    test: str  # file::function, which fails where the replacement gives other values
    factory: Factory
    found: Found

    @property
    def name(self) -> str:
        return self.targets[0].rpartition(".")[2]

    @property
    def homes(self) -> list[str]:
        return [target.rpartition(".")[0] for target in self.targets]


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
            for owner, name in _PLACES[patch.found](patch, scopes, bases):
                stack.enter_context(replaced_here(owner, name, patch.factory))
        yield


def _modules_of(classes: set[type]) -> list[Any]:
    """Where the classes are defined; code that was run without being imported has no module."""
    names = {cls.__module__ for cls in classes}
    return [sys.modules[name] for name in names if name in sys.modules]


Places = Iterator[tuple[Any, str]]


def _at_home(patch: Patch, _scopes: list[Any], _bases: set[type]) -> Places:
    for home in patch.homes:
        module, _, owner = home.rpartition(".")
        found = sys.modules.get(home) or getattr(sys.modules.get(module), owner, None)
        if found is not None and hasattr(found, patch.name):
            yield found, patch.name


def _by_import(patch: Patch, scopes: list[Any], _bases: set[type]) -> Places:
    for scope in scopes:
        if getattr(vars(scope).get(patch.name), "__module__", "") in patch.homes:
            yield scope, patch.name


def _in_class(patch: Patch, _scopes: list[Any], bases: set[type]) -> Places:
    for cls in bases:
        if f"{cls.__module__}.{cls.__qualname__}" in patch.homes and hasattr(cls, patch.name):
            yield cls, patch.name


def _under_decorators(patch: Patch, scopes: list[Any], bases: set[type]) -> Places:
    """The cell in which the innermost decorator keeps the function that it calls."""
    for cls, name in _in_class(patch, scopes, bases):
        holder = getattr(cls, name)
        while hasattr(holder.__wrapped__, "__wrapped__"):
            holder = holder.__wrapped__
        cells: tuple[CellType, ...] = holder.__closure__ or ()
        yield next(c for c in cells if original(c, "cell_contents") is holder.__wrapped__), "cell_contents"


def _by_signature(patch: Patch, _scopes: list[Any], bases: set[type]) -> Places:
    for cls in bases:
        method = original(cls, patch.name) if patch.name in vars(cls) else None
        if inspect.isfunction(method) and tuple(inspect.signature(method).parameters)[1:5] == _ROPE_PARAMETERS:
            yield cls, patch.name


def _in_scans(patch: Patch, scopes: list[Any], _bases: set[type]) -> Places:
    scanning = [scope for scope in scopes if hasattr(scope, "mamba_selective_scan")]
    if scanning and patch.name == "associative_scan":
        yield importlib.import_module(patch.homes[0]), patch.name
    elif patch.name != "associative_scan":
        yield from ((scope, patch.name) for scope in scanning if hasattr(scope, patch.name))


_ROPE_PARAMETERS = ("input_ids", "mm_token_type_ids", "image_grid_thw", "video_grid_thw")
_PLACES: dict[Found, Callable[[Patch, list[Any], set[type]], Places]] = {
    Found.AT_HOME: _at_home,
    Found.BY_IMPORT: _by_import,
    Found.IN_CLASS: _in_class,
    Found.UNDER_DECORATORS: _under_decorators,
    Found.BY_SIGNATURE: _by_signature,
    Found.IN_SCANS: _in_scans,
}


def _of(model: str, *names: str) -> tuple[str, ...]:
    return tuple(f"transformers.models.{model}.modeling_{model}.{name}" for name in names)


_ITEMS = "it goes from image to image in Python"
PATCHES = (
    Patch(
        ("transformers.masking_utils._vmap_expansion_sdpa",),
        "torch.vmap has no kernel for the recorder's dispatch key",
        "tests/patches/patches_test.py::test_a_mask_by_broadcasting_is_the_one_by_vmap",
        broadcast_mask,
        Found.AT_HOME,
    ),
    Patch(
        ("transformers.cache_utils.LinearAttentionLayer.update_conv_state",),
        "it asks whether a prompt is shorter than a convolution is wide",
        "tests/generation/generation_states_test.py::test_a_prompt_may_be_shorter_than_a_convolution_is_wide",
        padded_without_asking,
        Found.AT_HOME,
    ),
    Patch(
        ("transformers.vision_utils.get_vision_position_ids",),
        _ITEMS,
        "tests/symbolic/loops_test.py::test_positions_of_patches_are_those_of_transformers",
        vision_position_ids,
        Found.BY_IMPORT,
    ),
    Patch(
        ("transformers.vision_utils.get_vision_window_index",),
        _ITEMS,
        "tests/symbolic/loops_test.py::test_windows_of_patches_are_those_of_transformers",
        window_index,
        Found.BY_IMPORT,
    ),
    Patch(
        (*_of("qwen3_omni_moe", "get_audio_cu_seqlens"), *_of("qwen3_asr", "get_audio_cu_seqlens")),
        "it goes from sound to sound in Python",
        "tests/patches/patches_test.py::test_windows_of_sounds_are_those_of_transformers",
        audio_windows,
        Found.BY_IMPORT,
    ),
    Patch(
        _of("rwkv", "rwkv_linear_attention_cpu"),
        "it goes from token to token in Python",
        "tests/generation/generation_states_test.py::test_an_average_over_time_needs_no_loop",
        rwkv_attention,
        Found.BY_IMPORT,
    ),
    Patch(
        _of("qwen2_vl", "Qwen2VLModel.get_rope_index"),
        "it goes from sample to sample and from image to image in Python",
        "tests/symbolic/loops_test.py::test_positions_of_text_images_and_videos_are_those_of_transformers",
        where_values_agree(rope_index),
        Found.BY_SIGNATURE,
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
        _of("siglip2", "Siglip2VisionEmbeddings.resize_positional_embeddings"),
        _ITEMS,
        "tests/symbolic/loops_test.py::test_positions_resized_for_each_image_are_those_of_transformers",
        resized_positions,
        Found.IN_CLASS,
    ),
    Patch(
        _of("video_llama_3", "VideoLlama3VisionModel.pixel_unshuffle"),
        _ITEMS,
        "tests/patches/patches_test.py::test_the_middle_of_each_block_is_that_of_transformers",
        unshuffled,
        Found.IN_CLASS,
    ),
    Patch(
        _of("recurrent_gemma", "RecurrentGemmaRglru._rnn_scan"),
        "it goes from token to token in Python",
        "tests/patches/patches_test.py::test_a_linear_recurrence_is_that_of_transformers",
        linear_scan,
        Found.IN_CLASS,
    ),
    Patch(
        _of("xlstm", "xLSTMBackend.forward"),
        "it goes from chunk to chunk, and through the rest from token to token",
        "tests/generation/generation_states_test.py::test_chunks_of_a_text_are_one_chunk",
        mlstm_in_one_chunk,
        Found.IN_CLASS,
    ),
    Patch(
        ("torch._higher_order_ops.associative_scan.associative_scan",),
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
    rows = ["| target | why | found |", "|---|---|---|"]
    rows += [f"| `{_short(patch.targets[0])}` | {patch.why} | {patch.found.value} |" for patch in PATCHES]
    return "\n".join(rows) + "\n"


def _short(target: str) -> str:
    return ".".join(part for part in target.split(".")[-3:] if not part.startswith("modeling_"))


if __name__ == "__main__":
    print(table(), end="")
