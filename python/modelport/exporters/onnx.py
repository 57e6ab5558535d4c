"""Export to ONNX: any model that capture takes, with named dynamic axes, weights beside the file or where they are."""

from __future__ import annotations

import functools
import importlib.metadata
import json
import os
from collections.abc import Mapping, MutableMapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any, ClassVar

import torch

from .. import core
from ..captured import Captured
from ..capturing import capture
from ..errors import problem
from ..structure import flatten
from .base import HfExporter
from .configs import OnnxConfig
from .linked import linked
from .onnx_names import axis_names, check_names, output_names
from .onnx_session import quiet_session, run_session, to_numpy
from .patches import apply_patches
from .prepare import config_flags, prepare_for_export

# Attention, RMS normalization and rotary embedding are single operators from 23 on, which the current onnxruntime, its
# builds for Node.js and the browser included, all run.
DEFAULT_OPSET = 23
OPSETS = range(17, 27)


class OnnxExporter(HfExporter):
    """Captures a model and gives an ONNX model of it."""

    required_packages: ClassVar[list[str]] = ["torch"]
    min_versions: ClassVar[dict[str, str]] = {"torch": "2.13.0"}

    def export(
        self,
        model: torch.nn.Module | str | os.PathLike[str],
        sample_inputs: MutableMapping[str, Any],
        config: OnnxConfig | dict[str, Any] | None = None,
    ) -> OnnxProgram:
        config = OnnxConfig.given(config)
        opset = checked_opset(config.opset_version)
        shapes = {"dynamic": config.dynamic, "dynamic_shapes": config.dynamic_shapes}
        if isinstance(model, str | os.PathLike):
            captured = capture(model, sample_inputs, **shapes)
        else:
            model, inputs, flags = prepare_for_export(model, dict(sample_inputs))
            with apply_patches("onnx"), config_flags(model, flags):
                captured = capture(model, inputs, **shapes)
        program = OnnxProgram(captured, config, opset)
        if config.output_path is not None:
            program.save(config.output_path)
        return program


def checked_opset(asked: int | None) -> int:
    if asked is None:
        return DEFAULT_OPSET
    if asked not in OPSETS:
        raise problem(
            "E0301",
            f"opset {asked} is none that can be written",
            f"choose one from {OPSETS[0]} to {OPSETS[-1]}; {DEFAULT_OPSET} is the default",
        )
    return int(asked)


class OnnxProgram:
    """An ONNX model: `save` writes it, a call runs it in onnxruntime, `model_proto` is onnx's own object."""

    def __init__(self, captured: Captured, config: OnnxConfig, opset: int):
        self.captured = captured
        self.config = config
        self.opset = opset
        program = captured.unread_program
        inputs = [name for name, _, _ in program.inputs()]
        asked = dict(config.names or {})
        renamed = output_names(captured.output_names, inputs)
        ours = {name: renamed.get(name, name) for name in captured.output_names}
        check_names(asked, [*inputs, *ours.values()])
        self._input_names = {name: asked.get(name, name) for name in inputs}
        self._output_names = {name: asked.get(our, our) for name, our in ours.items()}
        self._axes = axis_names(program.dims(), program.inputs())
        self.graph = self._lowered(keep_weights=config.weights == "link")

    def _lowered(self, *, keep_weights: bool) -> Any:
        names = (self._input_names, self._output_names, self._axes)
        program = self.captured.unread_program
        return core.lower_onnx(program, self.opset, self.config.optimize, *names, keep_weights=keep_weights)

    @property
    def input_names(self) -> list[str]:
        return self.graph.inputs()

    @property
    def output_names(self) -> list[str]:
        return self.graph.outputs()

    @property
    def output_dtypes(self) -> list[torch.dtype]:
        return self.graph.output_dtypes()

    @property
    def node_count(self) -> int:
        return self.graph.node_count

    def feeds(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """The model's own inputs, nested or already flat, as onnxruntime takes them."""
        flat = flatten(dict(inputs))
        values = {n: v for n, v in zip(flat.names, flat.leaves, strict=True) if isinstance(v, torch.Tensor)}
        feeds = {}
        for own, name in self._input_names.items():
            if own not in values and name not in values:
                raise problem("E0301", f"the input {own} is missing", f"it takes: {', '.join(self._input_names)}")
            feeds[name] = to_numpy(values[own] if own in values else values[name])
        return feeds

    def __call__(self, **inputs: Any) -> tuple[torch.Tensor, ...]:
        """Runs the model in onnxruntime; the results in the order of `output_names`."""
        return tuple(run_session(self._session, self.output_names, self.feeds(inputs), self.output_dtypes))

    @functools.cached_property
    def _session(self) -> Any:
        return quiet_session(self.to_bytes())

    def to_bytes(self) -> bytes:
        """The whole model with its weights, as protobuf."""
        return self.graph.bytes(self._writing("inside"))

    @property
    def model_proto(self) -> Any:
        import onnx

        return onnx.load_from_string(self.to_bytes())

    def save(self, path: str | os.PathLike[str], **changes: Any) -> Path:
        """Writes the model, and its weights beside it unless the config says otherwise. What was at `path` stays whole
        if that fails. `changes` are fields of OnnxConfig that concern writing."""
        path = Path(path)
        writing = self._writing(None, **changes)
        places = self._weight_files(writing["weights"])
        as_stored = writing["weights"] == "linked"
        graph = self.graph if as_stored == (self.config.weights == "link") else self._lowered(keep_weights=as_stored)
        with linked(places, path) if as_stored else nullcontext(places) as places:
            files, losses = graph.write(os.fspath(path), writing, places)
        overflows = [f"{name} ({over} values)" for name, _, _, over, _ in losses if over]
        if overflows:
            import warnings

            warnings.warn(f"values too large for the type became infinite: {', '.join(overflows[:4])}", stacklevel=2)
        self.files = [Path(file) for file in files]
        return path

    def _weight_files(self, layout: str) -> dict[str, tuple[str, int]]:
        """Where the checkpoint has the weights; those that are stored in another form get their values first."""
        if not hasattr(self.captured, "weight_files"):
            if layout == "linked":
                raise problem(
                    "E0301",
                    "weights='link' needs a checkpoint to point into, and this model is in memory",
                    "export from the folder: OnnxExporter().export('path/to/folder', inputs, config)",
                    "weights='copy'",
                )
            return {}
        if layout != "left_out":
            _ = self.captured.program
        return {name: (stored.file, stored.offset) for name, stored in self.captured.weight_files().items()}

    def _writing(self, layout: str | None, **changes: Any) -> dict[str, Any]:
        chosen = {name: changes.get(name, getattr(self.config, name)) for name in _WRITING}
        if layout is None:
            layout = (
                "left_out"
                if not chosen["export_params"]
                else "linked"
                if chosen["weights"] == "link"
                else "beside"
                if chosen["external_data"]
                else "inside"
            )
        return {
            "weights": layout,
            "shard_bytes": int(chosen["shard_bytes"] or 0),
            "weights_as_inputs": bool(chosen["keep_initializers_as_inputs"]),
            "transpose_weights": layout in ("beside", "inside"),
            "data_suffix": "_data",
            "producer_version": importlib.metadata.version("modelport"),
            "metadata": self.metadata(),
        }

    def metadata(self) -> list[tuple[str, str]]:
        """What the file says of itself: sizes it is valid for, what the model assumed, where it came from."""
        ranges = {d["name"]: [d["lo"], d["hi"]] for d in self.graph.dims()}
        rows = [("modelport.ranges", json.dumps(ranges, sort_keys=True))]
        if self.graph.guards():
            rows.append(("modelport.guards", json.dumps(self.graph.guards())))
        if self.captured.assumptions:
            rows.append(("modelport.assumptions", json.dumps([_assumption(a) for a in self.captured.assumptions])))
        source = getattr(self.captured, "source", None)
        if source:
            rows.append(("modelport.source", os.fspath(source)))
        # How the model was made of it, for a check that makes it again.
        rows += [(f"modelport.{key}", value) for key, value in getattr(self.captured, "origin", {}).items()]
        return rows

    def __str__(self) -> str:
        return str(self.graph)


_WRITING = ("external_data", "export_params", "keep_initializers_as_inputs", "shard_bytes", "weights")


def _assumption(row: dict[str, Any]) -> str:
    return f"{row.get('file', '')}:{row.get('line', 0)} {row.get('expected', '')}"
