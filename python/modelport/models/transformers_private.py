"""Everything that we use of transformers and that has no promise: names with an underscore, in one place.

A test resolves each name of `NAMES` and another looks for such names elsewhere, so that a release which changes one is
noticed there. Beside a release that lacks one, what needs it says so, and the rest works. The names of patches are in
`patches/registry.py`: one that is not there is not replaced."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from ..base.errors import problem
from ..base.versions import NEWEST, installed

NAMES = (
    "transformers.PreTrainedModel._get_dtype_plan",
    "transformers.PreTrainedModel._keys_to_ignore_on_load_missing",
    "transformers.PreTrainedModel._move_missing_keys_from_meta_to_device",
    "transformers.PreTrainedModel._initialize_missing_keys",
    "transformers.AutoModel._model_mapping",
    # Steps of `generate`: exported models override them, and watching wraps the first.
    "transformers.GenerationMixin._prepare_cache_for_generation",
    "transformers.GenerationMixin._expand_inputs_for_generation",
    "transformers.GenerationMixin._validate_generated_length",
)

PREPARE_CACHE = "_prepare_cache_for_generation"
# A method of some models that take features in place of media; others do not have it.
TAKES_FEATURES = "_supports_mm_encoder_outputs"


def needed(owner: Any, name: str, feature: str) -> Any:
    """An attribute that one feature cannot do without."""
    found = getattr(owner, name, None)
    if found is None:
        raise problem("E0307", *_lacking(f"{name} of {_class_name(owner)}", feature))
    return found


def without_module(error: ImportError, feature: str) -> Exception:
    """The same for a module, or a name in it, that could not be imported, maybe for want of another package."""
    what, *ways = _lacking(str(error), feature)
    if error.name and not error.name.startswith("transformers"):
        ways.insert(0, f"install the package that has the module {error.name}, which transformers imports here")
    return problem("E0307", what, *ways)


def _lacking(what: str, feature: str) -> tuple[str, str]:
    there = f"transformers {installed('transformers')}"
    newest = f"pip install 'transformers=={NEWEST['transformers']}.*'"
    return f"{feature} cannot be done beside {there}, which does not give what it needs: {what}", newest


def _class_name(owner: Any) -> str:
    return owner.__name__ if isinstance(owner, type) else type(owner).__name__


def dtype_plan(model: Any, dtype: torch.dtype) -> dict[str, torch.dtype]:
    """Patterns of weights that keep another dtype than the one that a model is loaded in."""
    return needed(model, "_get_dtype_plan", "reading weights in their types")(dtype)


def optional_weights(model: Any) -> list[str]:
    """Patterns of weights that a checkpoint may lack."""
    return list(getattr(model, "_keys_to_ignore_on_load_missing", None) or ())


def is_auto_class(cls: Any) -> bool:
    return hasattr(cls, "_model_mapping")


def classes_for(auto_class: Any, config: Any) -> list[Any]:
    """The model classes that an auto class has for a configuration; none where it does not know it."""
    mapping = needed(auto_class, "_model_mapping", "finding the class for a task")
    if type(config) not in mapping:
        return []
    found = mapping[type(config)]
    return list(found) if isinstance(found, list | tuple) else [found]


def mark_as_loaded(tensors: Iterable[torch.Tensor]) -> None:
    """transformers leaves such tensors alone when it initializes the rest."""
    for tensor in tensors:
        tensor._is_hf_initialized = True  # type: ignore[attr-defined]


def make_missing(model: Any, names: set[str]) -> None:
    """Gives values to what a checkpoint lacks: buffers that the model computes, and first values of weights."""
    feature = "giving values to weights that the checkpoint lacks"
    needed(model, "_move_missing_keys_from_meta_to_device", feature)(names, None, None, None)
    needed(model, "_initialize_missing_keys", feature)(False)


def generation_config_among_settings(folder: Any) -> Any:
    """Of older checkpoints, which have it in config.json."""
    from transformers import GenerationConfig

    return GenerationConfig.from_pretrained(folder, config_file_name="config.json", _from_model_config=True)
