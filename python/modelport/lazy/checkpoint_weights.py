"""Capture from a checkpoint folder: the model is built from its configuration, its weights stay in their files.

The weights are mapped, not read: they are CPU tensors like any other, so the model's code sees nothing unusual, and a
capture computes only shapes with them. A weight that is stored in another form (experts one by one, another dtype) gets
memory without contents, which is filled when values are asked for."""

from __future__ import annotations

import dataclasses
import functools
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from ..base.core import is_recording
from ..base.dtypes import CONVERTIBLE
from ..base.errors import ExportError, problem
from ..base.place import model_line
from ..capturing.recording import zeros_of
from ..models.transformers_private import make_missing, mark_as_loaded
from ..weights.adapter import adapter_in
from ..weights.checkpoint import Checkpoint, empty_like, read_class_config
from ..weights.packed import find_packed, read_format
from ..weights.streams import WeightStreams
from ..weights.weight_names import Source, bind
from .meta_model import build_on_meta


class NeedsValues(Exception):
    """A checkpoint, or an export of it, that needs more than headers."""


def reason_of(error: Exception) -> str:
    if isinstance(error, NeedsValues):
        return str(error)
    if isinstance(error, ExportError) and error.diagnostics:
        row = error.diagnostics[0]
        what, where = row["what"], row
    else:
        what, where = f"{type(error).__name__}: {error}", model_line(error)
    at = f" at {where['file']}:{where['line']} in {where['function']}" if where.get("line") else ""
    return f"{what}{at}"


class CheckpointWeights:
    """A model over mapped weights, and where each of them is."""

    def __init__(
        self, folder: Path, checkpoint: Checkpoint, written: dict[str, Any], model_class: Any, asked: Any = None
    ):
        form = read_format(written.get("quantization_config"))
        if form is None and written.get("quantization_config"):
            raise NeedsValues("the checkpoint is quantized: its tensors are not the weights of the model")
        self.folder = folder
        self.checkpoint = checkpoint
        model_class, config = read_class_config(folder, model_class)
        if form is not None:
            del config.quantization_config  # of what is stored, not of the model
        dtype = _set_dtype(config, checkpoint, asked)
        adapter = adapter_in(folder)
        if adapter is not None:
            adapter.fit(config)
        self.model = build_on_meta(model_class, config, dtype)
        packed = find_packed(checkpoint.tensors, form) if form else {}
        sources = bind(self.model, checkpoint, dtype, packed, adapter)
        _settle_ties(self.model, checkpoint, sources)
        self._lazy: list[tuple[torch.Tensor, Source]] = []
        mapped: list[tuple[torch.Tensor, int, Source]] = []
        for name, source in sources.items():
            self._place(name, source, mapped)
        _make_the_rest(self.model, sources)
        # Tying gives the bias of a head other memory, with what was there before: maybe nothing yet.
        self._lazy += [(tensor, source) for tensor, place, source in mapped if tensor.data_ptr() != place]
        self.sources = _by_every_name(self.model, sources)
        self.refused = False  # whether a forward pass for its values was refused
        self.read = False  # whether values turned out to be needed
        self.filled = False  # whether some of them are in memory now
        self._unread = self._only_shapes = False
        self.model.register_forward_pre_hook(self._before_forward)

    @contextmanager
    def unread(self) -> Iterator[None]:
        """While it lasts, the model does not run for its values, unless it turned out that it must."""
        self._unread = True
        try:
            yield
        finally:
            self._unread = False

    @contextmanager
    def only_shapes(self) -> Iterator[None]:
        """While it lasts, the model gives zeros of the shapes of its values."""

        @functools.wraps(self.model.forward)
        def given(**kwargs: Any) -> Any:
            outside = vars(self.model).pop("forward")  # this function, or one that watches it
            try:
                return zeros_of(self.model, kwargs)
            finally:
                self.model.forward = outside

        self._only_shapes, self.model.forward = True, given
        try:
            yield
        finally:
            self._only_shapes = False
            del self.model.forward

    def read_because(self, error: Exception) -> None:
        if not self.read:
            warnings.warn(f"{self.folder}: the weights are read, because {reason_of(error)}", stacklevel=5)
        self.read, self._unread = True, False
        self.fill()

    @torch.no_grad()
    def fill(self) -> None:
        """Gives the weights that are stored in another form their values."""
        self.checkpoint.have_contents()
        self.filled = self.filled or bool(self._lazy)
        while self._lazy:
            tensor, source = self._lazy[-1]
            tensor.copy_(self._made(source))
            self._lazy.pop()

    def of(self, module: torch.nn.Module) -> CheckpointWeights | WeightsOfPart:
        """Those of a module that is a part of the model, or has one inside it."""
        return self if module is self.model else WeightsOfPart(self, module)

    def streams(self) -> WeightStreams:
        return self.streams_of(self.sources)

    def streams_of(self, sources: dict[str, Source]) -> WeightStreams:
        """Every weight from its file: as it is, or made of what is stored when it is written."""
        self.checkpoint.have_contents()
        found = WeightStreams()
        for name, source in sources.items():
            uncast = source.uncast
            if uncast is not None and {uncast.made.dtype, source.made.dtype} <= CONVERTIBLE:
                source = uncast
            stored = source.as_stored
            if stored is not None:
                found.places[name] = (stored.file, stored.offset, stored.dtype)
            else:
                found.made[name] = (source.made.dtype, functools.partial(self._made, source))
        for name, source in sources.items():
            if source.packed is not None and source.packed.fits_kernels:
                for part, (dtype, make) in source.packed.parts(source.made.dtype).items():
                    whole = dataclasses.replace(source, make=make)
                    found.made[f"{name}.{part}"] = (dtype, functools.partial(self._made, whole))
        return found

    def _made(self, source: Source) -> torch.Tensor:
        made = source.make(lambda stored: self.checkpoint.read(stored.name))
        for stored in source.pieces:
            self.checkpoint.forget(stored.name)
        return made

    def _before_forward(self, _module: Any, _args: Any) -> None:
        if is_recording() or self._only_shapes:
            return
        if self._unread:
            self.refused = True
            raise problem("E0206", "the values of the model are asked for", "modelport.capture(model, inputs)")
        self.fill()

    def _place(self, name: str, source: Source, mapped: list[tuple[torch.Tensor, int, Source]]) -> None:
        path, _, leaf = name.rpartition(".")
        module = self.model.get_submodule(path)
        stored = source.as_stored
        if leaf not in module._parameters:  # a capture computes with the values of buffers
            tensor = self._made(source) if stored is None else self.checkpoint.read(stored.name)
        elif stored is not None and stored.is_aligned:
            tensor = self.checkpoint.tensor(stored.name)
        else:
            tensor = empty_like(source.made)
        if leaf in module._parameters:
            tensor = torch.nn.Parameter(tensor, requires_grad=tensor.is_floating_point())
            module._parameters[leaf] = tensor
            if stored is None or not stored.is_aligned:
                self._lazy.append((tensor, source))
            else:
                mapped.append((tensor, tensor.data_ptr(), source))
        else:
            module._buffers[leaf] = tensor
        mark_as_loaded([tensor])


class WeightsOfPart:
    """Weights of a model under the names that they have in another module."""

    def __init__(self, weights: CheckpointWeights, module: torch.nn.Module):
        self._whole = weights
        self.folder, self.checkpoint = weights.folder, weights.checkpoint
        known = {id(tensor): name for name, tensor in weights.model.state_dict(keep_vars=True).items()}
        names = {name: known.get(id(tensor)) for name, tensor in module.state_dict(keep_vars=True).items()}
        self.sources = {name: weights.sources[own] for name, own in names.items() if own in weights.sources}

    def fill(self) -> None:
        self._whole.fill()

    def streams(self) -> WeightStreams:
        return self._whole.streams_of(self.sources)


def _set_dtype(config: Any, checkpoint: Checkpoint, asked: Any) -> torch.dtype:
    """The dtype that is asked for, or that transformers would load the model in: that of the configuration, else that
    of the file."""
    dtype = asked or getattr(config, "dtype", None)
    if dtype is None:
        stored = (t.dtype for t in checkpoint.tensors.values())
        dtype = next((d for d in stored if d.is_floating_point and d.itemsize > 1), torch.float32)
    dtype = getattr(torch, dtype) if isinstance(dtype, str) else dtype
    config.dtype = dtype
    for key in getattr(config, "sub_configs", ()):
        if getattr(config, key, None) is not None:
            getattr(config, key).dtype = dtype
    return dtype


def _settle_ties(model: Any, checkpoint: Checkpoint, sources: dict[str, Source]) -> None:
    """Both names of a tie are stored: it is a tie where they are equal, and two weights where they are not."""
    for target, source in list(model.all_tied_weights_keys.items()):
        if target not in sources or source not in sources:
            continue
        one, two = sources[target].as_stored, sources[source].as_stored
        if one is not None and two is not None and checkpoint.same_bytes(one.name, two.name):
            del sources[target]
        else:
            model.all_tied_weights_keys.pop(target)


def _make_the_rest(model: Any, sources: dict[str, Source]) -> None:
    """What no file holds gets its values: buffers that the model computes, and names that are ties."""
    missing = {name for name, tensor in model.state_dict().items() if name not in sources and tensor.is_meta}
    mark_as_loaded(map(model.get_parameter_or_buffer, model.all_tied_weights_keys))
    make_missing(model, missing)
    model.tie_weights(missing_keys=missing, recompute_mapping=False)
    empty = [name for name, t in [*model.named_parameters(), *model.named_buffers()] if t.is_meta]
    if empty:
        raise NeedsValues(f"these have no values when the model is built without weights: {', '.join(empty)}")


def _by_every_name(model: Any, sources: dict[str, Source]) -> dict[str, Source]:
    """Sources under all names of a weight, those of ties too."""
    state = model.state_dict(keep_vars=True)
    by_tensor = {id(state[name]): source for name, source in sources.items()}
    return {name: by_tensor[id(tensor)] for name, tensor in state.items() if id(tensor) in by_tensor}
