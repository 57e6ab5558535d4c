"""Export to ONNX: any model that capture takes, with named dynamic axes, weights beside the file or where they are."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import os
from collections.abc import MutableMapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, ClassVar

import torch

from ..base.dtypes import float_dtype, short_name
from ..base.errors import problem
from ..base.versions import OLDEST
from ..capturing.captured import Captured
from ..hub.folder import checkpoint_folder
from ..lazy.captured import CheckpointCaptured
from ..lazy.checkpoint_weights import CheckpointWeights
from ..lazy.entry import capture
from ..lazy.folder import capture_folder, model_with_values, open_model
from ..models.context_length import context_length
from ..patches.delta_rule import functions_of_the_rule, operator_at
from ..weights import lazy_weights
from .base import HfExporter, config_of_part, is_one_config
from .calibration import calibrated, settled
from .configs import OnnxConfig
from .onnx_program import OnnxProgram
from .patches import apply_patches
from .prepare import config_flags, in_dtype, prepare_for_export, refuse_other_type

if TYPE_CHECKING:
    from ..generation.components import Components
    from ..generation.part import Part

# Attention, RMS normalization and rotary embedding are single operators from 23 on, which the current onnxruntime, its
# builds for Node.js and the browser included, all run.
DEFAULT_OPSET = 23
OPSETS = range(17, 27)


class OnnxExporter(HfExporter):
    """Captures a model and gives an ONNX model of it."""

    required_packages: ClassVar[list[str]] = ["torch"]
    min_versions: ClassVar[dict[str, str]] = OLDEST

    def export(
        self,
        model: torch.nn.Module | str | os.PathLike[str],
        sample_inputs: MutableMapping[str, Any],
        config: OnnxConfig | dict[str, Any] | None = None,
    ) -> OnnxProgram:
        """The model, in memory or a checkpoint folder, with its forward keyword arguments as the example."""
        config = OnnxConfig.given(config)
        opset = checked_opset(config.opset_version)
        dtype = float_dtype(config.dtype)
        options = {
            "dynamic": config.dynamic,
            "dynamic_shapes": config.dynamic_shapes,
            "join_lists": config.join_lists,
            "dtype": dtype,
        }
        if isinstance(model, str | os.PathLike):
            inputs = sample_inputs if dtype is None else in_dtype(sample_inputs, dtype)
            folder, around = checkpoint_folder(model, headers=True), functools.partial(linear_attention_of, config)
            with apply_patches("onnx"):
                captured: Captured = capture_folder(folder, inputs, around=around, **options)
        else:
            model, inputs, flags = prepare_for_export(model, dict(sample_inputs))
            inputs = inputs if dtype is None else in_dtype(inputs, dtype)
            with apply_patches("onnx"), config_flags(model, flags), linear_attention_of(config, model):
                captured = capture(model, {**inputs, **flags}, **options)  # a part's own config may say otherwise
        if dtype is not None:
            captured.origin = {"dtype": short_name(dtype)}
        lower = functools.partial(OnnxProgram, captured, opset=opset)
        program = lower(calibrated(config, inputs, lower))
        settled({"model": program}, lambda: with_values(model), is_whole=True)
        if config.output_path is not None:
            program.save(config.output_path)
        return program

    def export_for_generation(
        self,
        model: Any,
        sample_inputs: MutableMapping[str, Any],
        config: Any = None,
        generation_config: Any = None,
        multi_token_decode: bool = False,
    ) -> Components:
        """The files that generate together, by name: `components.save(folder)` writes what `modelport.load` opens.
        `model` may be the path of a checkpoint folder, whose weights stay in their files.

        A decoder takes any number of tokens after any past, so that `multi_token_decode` is always so; sizes are
        symbolic whatever the config says."""
        from ..generation.components import components_for_generation

        dtype = float_dtype(OnnxConfig.given(config).dtype) if is_one_config(config) else None
        if isinstance(model, str | os.PathLike):
            model = open_model(model, dtype=dtype)
        else:
            refuse_other_type(model, dtype)
        parts = components_for_generation(model, sample_inputs, PartExport(config, model), generation_config)
        settled(parts, lambda: model)
        return parts


def with_values(model: torch.nn.Module | str | os.PathLike[str]) -> torch.nn.Module:
    """A model that computes: the one in memory, or that of the folder in fp32."""
    if isinstance(model, torch.nn.Module):
        return model
    loaded: torch.nn.Module = model_with_values(checkpoint_folder(model), dtype=torch.float32)
    return loaded


class PartExport:
    """Exports the parts of a generative model, each with its config."""

    def __init__(self, config: Any, model: Any):
        """`model` is the whole of which they are parts; its weights may be on disk."""
        weights = lazy_weights.of(model)
        self.config, self.weights = config, weights if isinstance(weights, CheckpointWeights) else None
        self.model = model

    def __call__(self, name: str, part: Part) -> OnnxProgram:
        config = OnnxConfig.given(config_of_part(self.config, name))
        opset = checked_opset(config.opset_version)
        inputs = dict(part.inputs)
        if config.num_logits_to_keep and part.gives_logits:
            inputs["logits_to_keep"] = self._counted(config.num_logits_to_keep)
        flags = {"use_cache": True} if part.gives_logits else {}
        with apply_patches("onnx"), config_flags(part.module, flags), linear_attention_of(config, part.module):
            shapes = {"dynamic_shapes": part.dynamic_shapes, "test_guards": part.trials is None}
            captured = capture(part.module, inputs, dynamic=True, join_lists=config.join_lists, **shapes)
            if part.trials is not None:
                part.trials(captured, inputs)
        if self.weights is not None:
            captured = CheckpointCaptured(captured, self.weights.of(part.module))
        if config.quantization is not None and config.quantization.form == "static":
            what = f"{name}: parts of a model that generates have no ranges of their inputs to round by"
            raise problem("E0319", what, "form='dynamic', or 'blocks'; on the command line --int8 dynamic")
        if part.serves is not None and not part.serves(captured):
            raise problem(
                "E0205",
                f"{name}: reading the prompt is not a case of continuing it, so that one graph does not serve both",
                "OnnxExporter().export(model, inputs) exports either",
            )
        if config.context_length is None:
            config = dataclasses.replace(config, context_length=context_length(self.model.config))
        return OnnxProgram(captured, config, opset)

    def _counted(self, logits: int) -> int:
        if "logits_to_keep" in inspect.signature(self.model.forward).parameters:
            return logits
        who = type(self.model).__name__
        raise problem(
            "E0306",
            f"num_logits_to_keep={logits}: {who} gives the logits of all tokens, whatever it is told",
            "leave num_logits_to_keep out",
        )


def linear_attention_of(config: OnnxConfig, model: Any) -> AbstractContextManager[None]:
    """As one operator for any number of tokens; models write it in chunks, as many as their example has."""
    places = functions_of_the_rule(model)
    if not places:
        return nullcontext()
    from ..generation.custom_attention import define_operators

    define_operators()
    return operator_at(places, "gated_delta_rule" if config.operators == "standard" else "linear_attention")


def checked_opset(asked: int | None) -> int:
    if asked is None:
        return DEFAULT_OPSET
    if asked not in OPSETS:
        raise problem(
            "E0306",
            f"opset {asked} is none that can be written",
            f"choose one from {OPSETS[0]} to {OPSETS[-1]}; {DEFAULT_OPSET} is the default",
        )
    return int(asked)
