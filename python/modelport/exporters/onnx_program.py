"""A captured model as an ONNX program: lowered, named, written, and run in onnxruntime."""

from __future__ import annotations

import collections
import dataclasses
import functools
import importlib.metadata
import json
import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from ..artifacts.artifact import further_outputs
from ..artifacts.limits import CallLimits, Limits
from ..artifacts.staging import Staging
from ..base import core
from ..base.errors import problem
from ..base.printable import listed
from ..base.structure import readable
from ..capturing.captured import Captured
from ..lazy.captured import CheckpointCaptured, LazyCaptured, WeightStreams
from ..runtimes.onnxruntime import run_session, shape_of, to_numpy
from ..runtimes.sessions import quiet_session
from .configs import OnnxConfig, this_processor
from .input_facts import Facts
from .linked import linked
from .onnx_names import axis_names, check_names, input_name, leaf_paths, output_names, told_apart
from .quantization import Quantization
from .scales_ahead import with_scales


class OnnxProgram:
    """An ONNX model: `save` writes it, a call runs it in onnxruntime, `model_proto` is onnx's own object."""

    def __init__(self, captured: Captured, config: OnnxConfig, opset: int):
        self.captured = captured
        self._packed = captured.packed_weights() if isinstance(captured, CheckpointCaptured) else {}
        if self._packed and config.quantization is None and config.dtype is None:  # the checkpoint's own codes
            config = dataclasses.replace(config, quantization=Quantization(form="stored"))
        self.config = config
        self.opset = opset
        program = captured.lazy_program
        self._paths: dict[str, str] = {}  # what inputs are taken for that come under the names of transformers
        self.renamed: dict[str, str] = {}  # names in the file that are not ours, by ours
        self._input_names, self._output_names = self._named()
        self._axes = axis_names(program.dims(), program.inputs())
        self.files: list[Path] = []  # that `save` wrote last
        self.example_names: list[str] | None = None  # tensors that the whole model got, where this is a part of it
        self.facts: Facts | None = None  # of the inputs of products, which weights in few bits are rounded by
        self.graph = self._lowered(keep_weights=config.weights == "link")

    def _named(self) -> tuple[dict[str, str], dict[str, str]]:
        """What inputs and outputs are called in the file, by their names in the graph."""
        captured = self.captured
        inputs = {name: input_name(name) for name, _, _ in captured.lazy_program.inputs()}
        renamed = output_names(captured.output_names, inputs)
        outputs = {name: renamed.get(name, name) for name in captured.output_names}
        if self.config.names == "transformers":
            paths = {name: path for name, path in leaf_paths(captured.inputs).items() if name in inputs}
            self._paths = {name: readable(path) for name, path in paths.items()}
            out = leaf_paths(captured.outputs, captured.in_graph)
            given, taken = told_apart(paths, {name: out.get(name, name) for name in outputs})
            self.renamed = {our: given[name] for name, our in inputs.items()}
            self.renamed |= {our: taken[name] for name, our in outputs.items()}
            return given, taken
        self.renamed = dict(self.config.names) if isinstance(self.config.names, dict) else {}
        check_names(self.renamed, [*inputs.values(), *outputs.values()])
        given = {name: self.renamed.get(our, our) for name, our in inputs.items()}
        return given, {name: self.renamed.get(our, our) for name, our in outputs.items()}

    def _lowered(self, *, keep_weights: bool) -> Any:
        names = (self._input_names, self._output_names, self._axes)
        program = self.captured.lazy_program
        settings = {
            "keep_weights": keep_weights,
            "limits_in_graph": self.config.limits_in_graph,
            "last_logits": self.config.last_logits,
            "operators": self.config.operators,
            "processor": self.config.processor or this_processor(),
            "context_length": self.config.context_length or 0,
            "quantization": self._quantization_settings(),
        }
        return core.lower_onnx(program, self.opset, self.config.optimize, *names, **settings)

    def _quantization_settings(self) -> dict[str, Any] | None:
        how = self.quantization
        return None if how is None else how.settings(self._packed, self.captured.lazy_program)

    def lowered_again(self, **changes: Any) -> OnnxProgram:
        """The same capture with these fields of the config changed."""
        again = OnnxProgram(self.captured, dataclasses.replace(self.config, **changes), self.opset)
        again.example_names = self.example_names
        again.facts = self.facts if again.quantization == self.quantization else None
        return again

    @property
    def names_of_inputs(self) -> dict[str, str]:
        """What inputs are called in the file, by their names in the graph."""
        return self._input_names

    @property
    def quantization(self) -> Quantization | None:
        return self.config.quantization

    @functools.cached_property
    def limits(self) -> Limits:
        """What the program is valid for; a call outside is refused."""
        return Limits(self._limits_json())

    def _limits_json(self) -> str:
        return self.graph.limits([(name, value) for name, value in self.captured.frozen().items()])

    @property
    def input_names(self) -> list[str]:
        return self.graph.inputs()

    @property
    def output_names(self) -> list[str]:
        return self.graph.outputs()[: self._own_outputs]

    @property
    def output_dtypes(self) -> list[torch.dtype]:
        return self.graph.output_dtypes()[: self._own_outputs]

    @property
    def _own_outputs(self) -> int:
        """Besides those of the model there are the buffers that it writes to, at the end."""
        return len(self.graph.outputs()) - len(self.limits.state)

    @property
    def node_count(self) -> int:
        return self.graph.node_count

    def feeds(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """The model's own inputs, nested or already flat, as onnxruntime takes them."""
        tensors = self.captured.tensors_by_name(inputs, renamed=self._input_names | self._paths)
        known = set(self.input_names)  # positions may have become needless
        named = {self._input_names[name]: tensor for name, tensor in tensors.items()}
        feeds = {name: to_numpy(tensor) for name, tensor in named.items() if name in known}
        self.limits.check_sizes([shape_of(feeds[name]) for name in self.limits.inputs])
        return feeds

    def __call__(self, **inputs: Any) -> tuple[torch.Tensor, ...]:
        """Runs the model in onnxruntime; the results in the order of `output_names`. Buffers that the model writes to
        are kept from call to call."""
        feeds, own, call = self.feeds(inputs), self._own_outputs, self._call
        names = self.output_names + call.further_outputs
        dtypes = self.graph.output_dtypes() + [torch.bool] * len(call.check_outputs)
        try:
            results = run_session(self._session, names, feeds | call.state, dtypes)
        except Exception as error:
            what = f"onnxruntime does not run the program on these inputs: {' '.join(str(error).split())}"
            raise problem("E0301", what, "program.captured.run(...) runs the same graph in torch") from error
        further = [to_numpy(value) for value in results[own:]]
        call.take(further, bool)
        return tuple(results[:own])

    def reset(self) -> None:
        """Buffers as they were when the model was exported."""
        self._call.reset()

    @functools.cached_property
    def _call(self) -> CallLimits:
        return CallLimits(self.limits)

    @functools.cached_property
    def _session(self) -> Any:
        return quiet_session(self.to_bytes() + further_outputs(self._call.check_outputs))

    def to_bytes(self) -> bytes:
        """The whole model with its weights, as protobuf."""
        streams = self._streams("inside")
        return self.graph.bytes(self._writing("inside"), streams.places, streams.made)

    @property
    def model_proto(self) -> Any:
        import onnx

        return onnx.load_from_string(self.to_bytes())

    def save(self, path: str | os.PathLike[str], **changes: Any) -> Path:
        """Writes the model, and its weights beside it unless the config says otherwise. What was at `path` stays whole
        if that fails. `changes` are fields of OnnxConfig that concern writing."""
        with Staging(path, is_file=True) as staging:
            self.write(staging.folder / staging.name, home=staging.target, **changes)
            own = tuple(file.name for file in self.files)
            self.files = [file for file in staging.commit() if file.name.startswith(own)]
        return Path(path)

    def write(self, path: Path, home: Path | None = None, **changes: Any) -> None:
        """As `save`, into a folder that is nobody's yet: Staging gives it its place. `home` is the folder that the
        file will be in, if it has to point from there."""
        writing = self._writing(None, **changes)
        streams = self._streams(writing["weights"])
        as_stored = writing["weights"] == "linked"
        graph = self.graph if as_stored == (self.config.weights == "link") else self._lowered(keep_weights=as_stored)
        captured = self.captured if as_stored else None
        stored = captured.weight_files() if isinstance(captured, CheckpointCaptured) else {}
        with linked({name: (s.file, s.offset) for name, s in stored.items()}, path, home) as (links, prints):
            places = streams.places | {name: (*place, stored[name].dtype) for name, place in links.items()}
            if prints:
                writing["metadata"].append(("modelport.linked", json.dumps(prints, sort_keys=True)))
                writing["home"] = os.path.realpath(home or path.parent)
            files, losses = graph.write(os.fspath(path), writing, with_scales(places), streams.made)
        if isinstance(self.captured, CheckpointCaptured):
            self.captured.refuse_changed()
        self.files = [Path(file) for file in files]
        warn_of_overflows({name: (over, to) for name, _, to, over, _ in losses if over})

    def _streams(self, layout: str) -> WeightStreams:
        """Where the weights are that have no contents in memory, to be read and converted as they are written."""
        if layout == "linked" and not hasattr(self.captured, "weight_files"):
            raise problem(
                "E0306",
                "weights='link' needs a checkpoint to point into, and this model is in memory",
                "export from the folder: OnnxExporter().export('path/to/folder', inputs, config)",
                "weights='copy'",
            )
        return self.captured.streams() if isinstance(self.captured, LazyCaptured) else WeightStreams()

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
            "home": "",
            "inputs_of_products": {} if self.facts is None else self.facts.places,
        }

    def metadata(self) -> list[tuple[str, str]]:
        """What the file says of itself: sizes it is valid for, what the model assumed, where it came from."""
        rows = [("modelport.limits", self._limits_json())]
        source = getattr(self.captured, "source", None)
        if source:
            rows.append(("modelport.source", os.path.abspath(source)))
        if self.example_names is not None:
            rows.append(("modelport.example_names", json.dumps(self.example_names)))
        if self.graph.fusions():
            rows.append(("modelport.fusions", json.dumps(fusion_rows(self.graph.fusions()))))
        if self.quantization is not None:
            rows.append(("modelport.quantization", json.dumps(dataclasses.asdict(self.quantization))))
        # How the model was made of it, for a check that makes it again.
        rows += [(f"modelport.{key}", value) for key, value in getattr(self.captured, "origin", {}).items()]
        return rows

    def __str__(self) -> str:
        return str(self.graph)


def fusion_rows(notes: Sequence[tuple[str, str, str]]) -> list[dict[str, Any]]:
    """Notes on fusions, each with the number of its places: which were made, and why others were not."""
    counts = collections.Counter((fusion, objection) for fusion, objection, _ in notes)
    return [{"fusion": fusion, "why_not": why, "places": count} for (fusion, why), count in counts.items()]


def warn_of_overflows(overflows: dict[str, tuple[int, str]]) -> None:
    """Says which weights have values that their new type has no room for."""
    if not overflows:
        return
    shown = listed((f"{name} ({count} of type {dtype})" for name, (count, dtype) in overflows.items()), 4)
    way_out = "; bf16 has room for them" if any(dtype == "f16" for _, dtype in overflows.values()) else ""
    warnings.warn(f"values too large became infinite in {shown}{way_out}", stacklevel=3)


_WRITING = ("external_data", "export_params", "keep_initializers_as_inputs", "shard_bytes", "weights")
