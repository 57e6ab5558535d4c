"""A model on the meta device, as from_pretrained builds it: shapes and types, no memory."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from ..models.locks import building_alone
from ..symbolic.replaced_attributes import replaced


def build_on_meta(model_class: Any, config: Any, dtype: torch.dtype) -> Any:
    """The model on the meta device, as from_pretrained builds it."""
    from transformers.monkey_patching import patch_output_recorders
    from transformers.utils import ContextManagers

    context = ContextManagers(model_class.get_init_context(dtype, False, False, None))
    with building_alone(), context, _no_values_on_meta():
        model = model_class(copy.deepcopy(config))
        patch_output_recorders(model)
    return model.eval()


@contextmanager
def _no_values_on_meta() -> Iterator[None]:
    """Layers of torch give their weights first values, which takes time even where there is no memory for them."""
    from transformers.initialization import TORCH_INIT_FUNCTIONS, TORCH_MODULES_TO_PATCH

    modules = [sys.modules[name] for name in TORCH_MODULES_TO_PATCH if name in sys.modules]
    with replaced((m, n, _unless_on_meta) for m in modules for n in TORCH_INIT_FUNCTIONS if hasattr(m, n)):
        yield


def _unless_on_meta(function: Callable[..., Any]) -> Callable[..., Any]:
    def given(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        return tensor if tensor.is_meta else function(tensor, *args, **kwargs)

    return given
