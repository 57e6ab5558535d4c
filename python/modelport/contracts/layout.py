"""An exported folder as a client's module sees it: the graphs with their inputs and outputs, and the two configs."""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import os
import re
from pathlib import Path
from typing import Any

from ..artifacts.artifact import Artifact
from ..artifacts.variants import of_type, split_name, types_of
from ..base.errors import ExportError, problem

_PREFIX = "modelport."
_OF_THE_GRAPH = ("limits", "fusions", "quantization")


@dataclasses.dataclass(frozen=True)
class Port:
    """An input or output of a graph; an axis is a number, or the name of what may change."""

    name: str
    dtype: str
    axes: tuple[int | str, ...]


@dataclasses.dataclass(frozen=True)
class Graph:
    """One .onnx file of the folder."""

    file: Path
    inputs: dict[str, Port]
    outputs: dict[str, Port]
    weight_files: tuple[str, ...]
    origin: dict[str, str]  # what the file says of where it comes from

    @classmethod
    def read(cls, file: Path) -> Graph:
        artifact = Artifact(file)
        inputs, outputs = (
            {row["name"]: _port(row) for row in artifact.summary[side]} for side in ("inputs", "outputs")
        )
        weight_files = tuple(row["file"] for row in artifact.weight_files())
        said = {key: value for key, value in artifact.summary["metadata"].items() if key.startswith(_PREFIX)}
        origin = {key.removeprefix(_PREFIX): value for key, value in said.items() if not key.endswith(_OF_THE_GRAPH)}
        return cls(file, inputs, outputs, weight_files, origin)

    def inputs_like(self, pattern: str) -> list[Port]:
        return [port for port in self.inputs.values() if re.fullmatch(pattern, port.name)]


def _port(row: dict[str, Any]) -> Port:
    axes = tuple(int(size) if size.isdigit() else size for size in row["shape"] or ())
    return Port(row["name"], row["dtype"], axes)


@dataclasses.dataclass(frozen=True)
class Layout:
    """What an export wrote under the default names."""

    folder: Path
    config: Any
    generation_config: Any = None
    dtype: str | None = None  # of the files, where the folder has the model in several types

    @functools.cached_property
    def graphs(self) -> dict[str, Graph]:
        """By the name of the file without its ending and the type in it."""
        files = sorted(self.folder.glob("*.onnx"))
        own = of_type(files, self.dtype, self.folder) if files else []
        return {split_name(file.stem)[0]: Graph.read(file) for file in own}

    def types(self) -> list[Layout]:
        """The same folder for each type that it has."""
        names = types_of(self.folder.glob("*.onnx"))
        return [dataclasses.replace(self, dtype=name) for name in names] or [self]

    @property
    def model_class(self) -> str:
        """The class that was exported, which need not be the one that the checkpoint was saved from."""
        named = (graph.origin.get("model_class") for graph in self.graphs.values())
        return named_class(self.config, next(filter(None, named), None))

    def refusal(self, client: str, why: str, *ways_out: str) -> ExportError:
        return refusal(client, self.config, self.model_class, why, *ways_out)

    def has(self, *names: str) -> bool:
        return any((self.folder / name).exists() for name in names)

    def setting(self, name: str, default: Any = None) -> Any:
        """What generation is to do, else what the model was made with."""
        for source in (self.generation_config, self.config, text_config(self.config)):
            value = getattr(source, name, None)
            if value is not None:
                return value
        return default

    def preprocessor(self) -> dict[str, Any]:
        """How images or sound are prepared: a file of its own, or inside that of the processor, as transformers 5 saves
        it."""
        file, whole = (self.folder / name for name in ("preprocessor_config.json", "processor_config.json"))
        if file.exists():
            return json.loads(file.read_text())
        given = json.loads(whole.read_text()) if whole.exists() else {}
        parts = [given[name] for name in ("feature_extractor", "image_processor") if name in given]
        named = {name: given[name] for name in ("processor_class",) if name in given and parts}
        return {key: value for part in (*parts, named) for key, value in part.items()}

    def write_json(self, name: str, content: dict[str, Any]) -> None:
        """In one step, so that a reader never sees half of it."""
        file = self.folder / name
        partial = file.with_name(f".{name}.partial")
        partial.write_text(json.dumps(_finite(content), indent=2, allow_nan=False) + "\n")
        os.replace(partial, file)


def _finite(content: Any) -> Any:
    """JSON has no infinities; transformers writes, and reads, objects in their place."""
    if isinstance(content, dict):
        return {key: _finite(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_finite(value) for value in content]
    if isinstance(content, float) and not math.isfinite(content):
        return {"__float__": "NaN" if math.isnan(content) else "Infinity" if content > 0 else "-Infinity"}
    return content


def text_config(config: Any) -> Any:
    return config.get_text_config(decoder=True)


def named_class(config: Any, model_class: str | None = None) -> str:
    """The class that is exported: the one named, else that of the config, else its model type."""
    return model_class or (getattr(config, "architectures", None) or [config.model_type])[0]


def refusal(client: str, config: Any, name: str, why: str, *ways_out: str) -> ExportError:
    return problem(
        "E0315",
        f"{client} cannot run {name} (model type {config.model_type}): {why}",
        *ways_out,
        "export it without --for; modelport.load(OUT) runs it",
    )
