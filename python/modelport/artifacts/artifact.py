"""What an ONNX artifact says of itself, read without torch and without touching its weights."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .. import _artifact
from ..base.errors import problem
from ..base.json_text import parse_json
from ..base.printable import shell_quote
from .limits import WithLimits
from .variants import SUFFIXES, of_type

further_outputs = _artifact.further_outputs
settable_flag = _artifact.settable_flag

# An initializer of files that give the logits of each row's last token: whether they give all of them after all.
ALL_LOGITS = "modelport.all_logits"

DECODERS = ("decoder_model_merged", "decoder_with_past_model", "model", "decoder_model")
FEATURES = ("vision_encoder", "video_encoder", "audio_encoder", "speech_encoder", "image_encoder")
ENCODER, EMBEDDING = "encoder_model", "embed_tokens"
# What a reader takes for parts of the model of a folder. They do not outlive it: with another model they would be taken
# for parts of that. Models by their names without .onnx, and what clients read of them.
_GRAPHS = (*DECODERS, *FEATURES, ENCODER, EMBEDDING)
PARTS = (
    *(f"{graph}{suffix}" for graph in _GRAPHS for suffix in SUFFIXES.values()),
    "genai_config.json",
    "audio_processor_config.json",
)
EXPORT_AGAIN = "export it again: modelport export onnx MODEL OUT"
_FRESH = re.compile("-[0-9a-f]{8}$")  # of weights while the files of a model are replaced


def find_models(path: str | os.PathLike[str], dtype: str | None = None) -> list[Path]:
    """The `.onnx` files that a path stands for: itself, or those of a folder or of its `onnx` folder. Of a model in
    several types, the files of the one that is asked for."""
    found = find_all_models(path)
    return found if Path(path).is_file() else of_type(found, dtype, Path(path))


def find_all_models(path: str | os.PathLike[str]) -> list[Path]:
    """The same, of all types."""
    path = Path(path)
    if path.exists() and _artifact.is_half_replaced(os.fspath(path)):
        raise problem("E0103", f"{path}: an export into this folder was killed, or is not done", EXPORT_AGAIN)
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise problem("E0103", f"{path}: no such file or folder", "name an .onnx file, or the folder of an export")
    for folder in (path, path / "onnx"):
        found = sorted(folder.glob("*.onnx"), key=lambda file: (file.name != "model.onnx", file.name))
        if found:
            return found
    if any(path.glob("openvino_*.xml")):
        what, way = f"{path} has a model for OpenVINO, and this is for ONNX", f"modelport inspect {shell_quote(path)}"
        raise problem("E0103", what, way, "export it to ONNX too: modelport export onnx MODEL OUT")
    raise problem(
        "E0103",
        f"{path}: no .onnx file in this folder",
        f"export the model first: modelport export onnx {shell_quote(path)} OUT",
    )


def generates(path: str | os.PathLike[str]) -> bool:
    """Whether the files of a folder generate together: they say so, or one of them takes a past."""
    if not Path(path).is_dir():
        return False
    parts = [Artifact(file) for file in find_models(path)]
    said = any(part.note("generates") for part in parts)
    return said or ((Path(path) / "config.json").exists() and any(part.takes_a_past for part in parts))


def find_model(path: str | os.PathLike[str], dtype: str | None = None) -> Path:
    """The one `.onnx` file of a path."""
    found = find_models(path, dtype)
    if len(found) > 1 and found[0].name != "model.onnx":
        names = ", ".join(file.name for file in found)
        raise problem("E0106", f"{path} has several models: {names}", "name the file")
    return found[0]


class Artifact(WithLimits):
    """One `.onnx` file: `summary` holds what modelport._artifact reads, with the nodes where they are asked for."""

    def __init__(self, path: str | os.PathLike[str], *, nodes: bool = False):
        self.path = Path(path)
        if not self.path.is_file():
            raise problem("E0103", f"{path}: no such file", "name an .onnx file")
        self.summary: dict[str, Any] = _artifact.read_onnx(os.fspath(self.path), nodes)

    @property
    def guards(self) -> list[str]:
        return self.limits.conditions if self.limits else []

    @property
    def assumptions(self) -> list[str]:
        checks = self.limits.checks if self.limits else []
        return [f"{check['file']}:{check['line']} {check['what']}" for check in checks]

    @property
    def outputs(self) -> list[dict[str, Any]]:
        """Those of the model: what a buffer holds after a call is none of them."""
        state = {output for _, output in self.limits.state} if self.limits else set()
        return [row for row in self.summary["outputs"] if row["name"] not in state]

    @property
    def inputs(self) -> list[dict[str, Any]]:
        """Those of the model: a buffer that comes in with a value of its own is none of them."""
        state = {name for name, _ in self.limits.state} if self.limits else set()
        return [row for row in self.summary["inputs"] if row["name"] not in state]

    @property
    def of_prompts(self) -> dict[str, float]:
        """Inputs that have one value for all tokens of a prompt, where the file is written for that value alone."""
        return self._json("modelport.of_prompts", {}, lambda value: isinstance(value, int | float))

    @property
    def example_names(self) -> list[str]:
        """The tensors that the whole model got when this part of it was exported; nothing where it does not say."""
        return self._json("modelport.example_names", [], lambda value: isinstance(value, str))

    @property
    def gives_last_logits(self) -> bool:
        """Whether it leaves out all others, as long as nobody asks for them."""
        return any(weight["name"] == ALL_LOGITS for weight in self.summary["weights"])

    @property
    def takes_a_past(self) -> bool:
        return any(row["name"].startswith("past_") for row in self.summary["inputs"])

    def note(self, key: str) -> str | None:
        """A text that the exporter left: "source", "model_class", "dtype"."""
        return self.summary["metadata"].get(f"modelport.{key}")

    def _json(self, key: str, default: Any, is_item: Callable[[Any], bool]) -> Any:
        text = self.summary["metadata"].get(key)
        if text is None:
            return default
        try:
            found = parse_json(text)
        except ValueError:
            found = None
        items = found.values() if isinstance(found, dict) else found
        if not isinstance(found, type(default)) or not all(map(is_item, items)):
            raise problem("E0103", f"{self.path}: its metadata {key} cannot be read", "export it again")
        return found

    def weight_files(self) -> list[dict[str, Any]]:
        """The files that hold weights outside the model: how much of each is used, and whether it is all there."""
        used: dict[str, list[int]] = {}
        for weight in self.summary["weights"]:
            if weight["file"]:
                row = used.setdefault(weight["file"], [0, 0])
                row[0] += weight["bytes"]
                row[1] = max(row[1], weight["offset"] + weight["bytes"])
        rows = []
        for name, (size, end) in used.items():
            state = data_state(self.path, name, end)
            rows.append({"file": name, "bytes": size, "state": state})
        return rows

    def fingerprint_at_export(self, file: str) -> str | None:
        """Of a file with weights that is the checkpoint's, by another name or its own."""
        linked = self._json("modelport.linked", {}, lambda value: isinstance(value, str))
        return linked.get(_FRESH.sub("", file)) or linked.get(file)

    def refuse_other_weights(self) -> None:
        """Raises where the weights outside the file are not all there, or are files of a checkpoint that changed."""
        rows = self.weight_files()
        if lost := [row for row in rows if row["state"] != "whole"]:
            what = ", ".join(f"{row['file']} is {row['state']}" for row in lost)
            way = "copy the whole folder: weights lie beside the model"
            raise problem("E0103", f"{self.path}: of its weights, {what}", way, EXPORT_AGAIN)
        for name in (row["file"] for row in rows):
            before = self.fingerprint_at_export(name)
            file = self.path.parent / name
            if before is not None and not _artifact.is_unchanged(os.fspath(file), before):
                raise problem(
                    "E0103",
                    f"{self.path} points into a checkpoint that was overwritten: {file} has other contents than at the "
                    "export",
                    f"{EXPORT_AGAIN} --weights link",
                    "keep the weights apart from the checkpoint: --weights copy",
                )


def data_state(model: Path, name: str, end: int = 0) -> str:
    """Whether a file that a model names for its weights is there, as far as `end`: "whole", or what it is instead.

    It has to lie in the folder of the model, also where links lead: else a model from a stranger could read any file.
    In a download of the hub, model and weights are links to files that lie in one folder."""
    if "\0" in name or os.path.isabs(name) or ".." in Path(name).parts:
        return "outside the folder of the model"
    real = Path(os.path.realpath(model.parent / name))
    homes = (os.path.realpath(model.parent), os.path.dirname(os.path.realpath(model)))
    if not any(real.is_relative_to(home) for home in homes):
        return "outside the folder of the model"
    if not real.is_file():
        return "missing"
    return "too short" if real.stat().st_size < end else "whole"


def refuse_outside(model: str | os.PathLike[str]) -> None:
    """Before anybody opens a model: all files that it names lie beside it."""
    for name in map(os.fsdecode, _artifact.data_files(os.fspath(model))):
        state = data_state(Path(model), name)
        if state != "whole":
            raise problem(
                "E0103",
                f"{os.fspath(model)}: of its weights, {name} is {state}",
                "use a model whose weights lie in its folder: export it again, or copy the whole folder",
            )
