"""Export to ExecuTorch: any model that capture takes, as a `.pte` program."""

from __future__ import annotations

import os
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any, ClassVar

import torch

from ..base.dtypes import float_dtype, short_name
from ..base.versions import OLDEST
from ..lazy.entry import capture
from ..runtimes.executorch_compilers import tools_for
from ..weights.checkpoint import read_config
from .base import HfExporter
from .configs import ExecutorchConfig
from .executorch import ExecutorchProgram
from .executorch_backends import CompiledProgram
from .executorch_generation import export_for_generation, own_dtype
from .patches import apply_patches
from .prepare import config_flags, in_dtype, prepare_for_export


class ExecutorchExporter(HfExporter):
    """Captures a model and gives an ExecuTorch program of it."""

    required_packages: ClassVar[list[str]] = ["torch"]
    min_versions: ClassVar[dict[str, str]] = OLDEST

    def export(
        self,
        model: torch.nn.Module | str | os.PathLike[str],
        sample_inputs: MutableMapping[str, Any],
        config: ExecutorchConfig | dict[str, Any] | None = None,
    ) -> ExecutorchProgram:
        """A `CompiledProgram` where the backend is one that ExecuTorch's own tools compile for."""
        config = ExecutorchConfig.given(config).without_encoder().for_type(own_dtype(model))
        if config.compiled_by_others:
            tools_for(str(config.backend))
        dtype = float_dtype(config.dtype)
        # A program for a device sets aside memory for the largest batch, so that an example of one row means one row.
        options = {
            "dynamic": config.dynamic,
            "dynamic_shapes": config.dynamic_shapes,
            "grow_batch": False,
            "join_lists": config.join_lists,
            "dtype": dtype,
        }
        if isinstance(model, str | os.PathLike):
            inputs = sample_inputs if dtype is None else in_dtype(sample_inputs, dtype)
            with apply_patches("executorch"):
                captured = capture(model, inputs, **options)
            model_config: Any = read_config(Path(model))
        else:
            model, inputs, flags = prepare_for_export(model, dict(sample_inputs))
            inputs = inputs if dtype is None else in_dtype(inputs, dtype)
            with apply_patches("executorch"), config_flags(model, flags):
                captured = capture(model, {**inputs, **flags}, **options)  # a part's own config may say otherwise
            model_config = getattr(model, "config", None)
        if dtype is not None:
            captured.origin = {"dtype": short_name(dtype)}
        program: Any
        if config.compiled_by_others:
            program = CompiledProgram(captured, config)
        else:
            program = ExecutorchProgram(captured, config, model_config)
        if config.output_path is not None:
            program.save(config.output_path)
        return program

    def export_for_generation(
        self,
        model: Any,
        sample_inputs: MutableMapping[str, Any] | None = None,
        config: Any = None,
        generation_config: Any = None,
        multi_token_decode: bool = False,
    ) -> Any:
        """One program that generates, with a method for each part: `components.save(folder)` writes what
        `modelport.load` and ExecuTorch's runners open. `model` may be the path of a checkpoint folder, whose weights
        stay in their files. A decoder always takes several tokens after any past."""
        return export_for_generation(model, sample_inputs or {}, ExecutorchConfig.given(config))
