"""Export to PyTorch's own `.pt2`."""

from __future__ import annotations

import os
import warnings
from collections.abc import MutableMapping
from typing import Any, ClassVar

import torch
from torch.utils import _pytree as pytree

from ..base import core
from ..base.errors import problem
from ..base.structure import Flat
from ..base.versions import OLDEST
from ..capturing.captured import Captured
from ..lazy.entry import capture
from .base import HfExporter
from .configs import DynamoConfig
from .exported_program import ExportedProgram
from .patches import apply_patches
from .prepare import config_flags, prepare_for_export
from .pt2_structure import UnknownStructure, build

_SAVE = "save the program again with torch.export.save"


class DynamoExporter(HfExporter):
    """Captures a model and gives torch's own ExportedProgram of it."""

    required_packages: ClassVar[list[str]] = ["torch"]
    min_versions: ClassVar[dict[str, str]] = OLDEST

    def export(
        self,
        model: torch.nn.Module,
        sample_inputs: MutableMapping[str, Any],
        config: DynamoConfig | dict[str, Any] | None = None,
    ) -> ExportedProgram:
        """The model with its forward keyword arguments as the example."""
        config = DynamoConfig.given(config)
        model, inputs, flags = prepare_for_export(model, dict(sample_inputs))
        # torch wants a program to be called as it was exported: with the flags that were given, as constants.
        given = {name: flags.get(name, inputs.get(name)) for name in sample_inputs}
        with apply_patches("dynamo"), config_flags(model, flags):
            options = {"dynamic_shapes": config.dynamic_shapes, "join_lists": config.join_lists}
            captured = capture(model, given, dynamic=config.dynamic, **options)
        return ExportedProgram(captured)


def load_pt2(path: str | os.PathLike[str]) -> Captured:
    """Reads a `.pt2` that torch.export or we saved, into a graph that runs and can be taken on to another target."""
    program, inputs, outputs, call, result = core.read_pt2(os.fspath(path))
    # The example inputs are not in the file: tensors of the right type stand for them.
    leaves = [torch.empty(0) if in_graph else value for _, in_graph, value in inputs]
    constants = [None if in_graph else value for _, in_graph, value in outputs]
    flags = [in_graph for _, in_graph, _ in outputs]
    names = [name for name, _, _ in outputs]
    out = Flat(names, constants, _result_spec(path, result, names))
    return Captured(
        program, Flat([name for name, _, _ in inputs], leaves, _inputs_spec(path, call, inputs)), out, flags
    )


def _inputs_spec(path: str | os.PathLike[str], call: Any, inputs: list[Any]) -> pytree.TreeSpec:
    """The structure of the keywords, with positional arguments among them."""
    try:
        args, kwargs = build(call)
    except UnknownStructure as error:
        raise problem(
            "E0103",
            f"{path}: its inputs have {error}, which is not made from a file",
            "import the model's class before, if it is one of transformers: from transformers import ...",
            "export the model again with inputs that are tensors, tuples, dicts or caches of transformers",
        ) from error
    except (TypeError, ValueError) as error:
        raise problem("E0103", f"{path}: its program is not called with arguments", _SAVE) from error
    spec = pytree.tree_structure({**{f"*{i}": arg for i, arg in enumerate(args)}, **kwargs})
    if spec.num_leaves != len(inputs):
        raise problem("E0103", f"{path}: its program and the structure of its call differ", _SAVE)
    return spec


def _result_spec(path: str | os.PathLike[str], result: Any, names: list[str]) -> pytree.TreeSpec:
    """The structure of the result; of types that are not known here, a dict by the names of its values."""
    try:
        spec = pytree.tree_structure(build(result))
    except UnknownStructure as error:
        warnings.warn(
            f"{path}: its result has {error}, which is not made from a file; it comes as a dict", stacklevel=3
        )
        spec = pytree.tree_structure(dict.fromkeys(names, 0))
    if spec.num_leaves != len(names):
        raise problem("E0103", f"{path}: its program and the structure of its result differ", _SAVE)
    return spec
