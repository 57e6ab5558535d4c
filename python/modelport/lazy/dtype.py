"""A model in memory as if it had been loaded in another floating type, without a second copy of its weights.

While a model is cast, its parameters are tensors of the new type whose memory is not there yet: a capture asks for
their shapes only. Where values are needed after all, they are filled in. Whoever writes the capture takes the weights
as they are in the model and converts them on the way."""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch

from ..base.core import is_recording
from ..base.dtypes import CONVERTIBLE
from ..capturing.captured import Captured
from ..capturing.model import capture_model
from ..models.locks import only_user
from ..weights import lazy_weights
from ..weights.checkpoint import empty_like
from ..weights.weight_names import wanted_dtypes as by_plan
from .captured import LazyCaptured, WeightStreams
from .meta_model import build_on_meta


def capture_in_dtype(model: torch.nn.Module, inputs: Any, dtype: torch.dtype, **options: Any) -> Captured:
    """`capture` of the model in another type; `inputs` have that type already."""
    with only_user(model):
        cast = CastModel(model, dtype)
        with cast.applied():
            captured = capture_model(model, inputs, **options)
    return LazyCaptured(captured, cast)


@contextmanager
def computing_in(model: torch.nn.Module, dtype: torch.dtype) -> Iterator[None]:
    """While it lasts, the model computes in another type."""
    with only_user(model):
        cast = CastModel(model, dtype)
        with cast.applied():
            cast.fill()
            yield


class CastModel:
    """The tensors of a model that have another type in the one that is wanted, and what takes their place."""

    def __init__(self, model: torch.nn.Module, dtype: torch.dtype):
        self.model, self.dtype = model, dtype
        self._lazy: list[tuple[torch.Tensor, torch.Tensor]] = []  # with what it is filled with
        self._before: dict[str, torch.Tensor] = {}
        self._after: dict[str, torch.Tensor] = {}
        by_tensor: dict[int, torch.Tensor] = {}  # a tie stays one
        wanted = wanted_dtypes(model, dtype)
        for name, tensor in _tensors(model).items():
            if wanted[name] == tensor.dtype:
                continue
            if id(tensor) not in by_tensor:
                by_tensor[id(tensor)] = self._replacement(tensor, wanted[name])
            self._before[name], self._after[name] = tensor, by_tensor[id(tensor)]

    def _replacement(self, tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        # A capture computes with the values of buffers, and memory that is not there yet is the CPU's.
        if not isinstance(tensor, torch.nn.Parameter) or tensor.device.type != "cpu":
            made = tensor.detach().to(dtype)
        else:
            made = empty_like(torch.empty(tensor.shape, dtype=dtype, device="meta"))
            self._lazy.append((made, tensor))
        return torch.nn.Parameter(made, tensor.requires_grad) if isinstance(tensor, torch.nn.Parameter) else made

    @contextmanager
    def applied(self) -> Iterator[None]:
        dtypes = [(config, getattr(config, "dtype", None)) for config in _configs(self.model)]
        hook = self.model.register_forward_pre_hook(self._before_forward)
        lazy_weights.register(self.model, self)
        try:
            _place(self.model, self._after)
            for config, _ in dtypes:
                config.dtype = self.dtype
            yield
        finally:
            for config, dtype in dtypes:
                config.dtype = dtype
            _place(self.model, self._before)
            lazy_weights.unregister(self.model)
            hook.remove()

    @torch.no_grad()
    def fill(self) -> None:
        while self._lazy:
            tensor, source = self._lazy[-1]
            tensor.copy_(source)
            self._lazy.pop()

    def read_because(self, error: Exception) -> None:
        self.fill()

    def streams(self) -> WeightStreams:
        """The weights in the type that the model has them in; from another device they come one by one."""
        return WeightStreams(
            made={name: (tensor.dtype, functools.partial(_itself, tensor)) for name, tensor in self._before.items()}
        )

    def _before_forward(self, _module: Any, _args: Any) -> None:
        if not is_recording():  # the model runs for its values
            self.fill()


def _itself(tensor: torch.Tensor) -> torch.Tensor:
    return tensor


def wanted_dtypes(model: torch.nn.Module, dtype: torch.dtype) -> dict[str, torch.dtype]:
    """For each parameter and buffer the type that it has in a model of the type that is asked for.

    For a model of transformers these are the types that `from_pretrained` gives them: some weights and tables stay in
    float32. Anything else is as `model.to(dtype)` makes it."""
    tensors = _tensors(model)
    wanted = {name: dtype if tensor.dtype in CONVERTIBLE else tensor.dtype for name, tensor in tensors.items()}
    for path, part in _outermost_of_transformers(model):
        prefix = f"{path}." if path else ""
        for name, found in _as_loaded(part, dtype).items():
            if wanted.get(prefix + name) == dtype:
                wanted[prefix + name] = found
    return wanted


def _as_loaded(model: Any, dtype: torch.dtype) -> Mapping[str, torch.dtype]:
    config = copy.deepcopy(model.config)
    for one in (config, *_inner(config)):
        one.dtype = dtype
    try:
        built = build_on_meta(type(model), config, dtype)
    except Exception:  # a model that was not made of its configuration alone
        return {}
    plan, saved = by_plan(built, dtype), built.state_dict().keys()
    floating = {name: t.dtype for name, t in _tensors(built).items() if t.dtype in CONVERTIBLE}
    return {name: plan(name, found) if name in saved else found for name, found in floating.items()}


def _outermost_of_transformers(model: torch.nn.Module) -> list[tuple[str, Any]]:
    from transformers import PreTrainedModel

    found: list[tuple[str, Any]] = []
    for path, module in model.named_modules():
        inside = any(path.startswith(f"{outer}." if outer else "") for outer, _ in found)
        if isinstance(module, PreTrainedModel) and not inside:
            found.append((path, module))
    return found


def _tensors(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Parameters and buffers under all their names."""
    named = [*model.named_parameters(remove_duplicate=False), *model.named_buffers(remove_duplicate=False)]
    return dict(named)


def _place(model: torch.nn.Module, tensors: Mapping[str, torch.Tensor]) -> None:
    for name, tensor in tensors.items():
        path, _, leaf = name.rpartition(".")
        module = model.get_submodule(path)
        (module._parameters if leaf in module._parameters else module._buffers)[leaf] = tensor


def _configs(model: torch.nn.Module) -> list[Any]:
    """Configurations of the model and its parts, in which code looks for the type."""
    outer = [part.config for _, part in _outermost_of_transformers(model)]
    found = [config for one in outer for config in (one, *_inner(one))]
    return list({id(config): config for config in found}.values())


def _inner(config: Any) -> list[Any]:
    parts = [getattr(config, key, None) for key in getattr(config, "sub_configs", ())]
    return [part for part in parts if part is not None]
