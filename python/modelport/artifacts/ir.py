"""What an OpenVINO model (`.xml` with its `.bin`) says of itself, read without torch and without OpenVINO."""

from __future__ import annotations

import collections
import os
from pathlib import Path
from typing import Any
from xml.parsers import expat

from .. import _artifact
from ..base.errors import problem
from ..base.json_text import parse_json
from .artifact import EMBEDDING, ENCODER, Artifact
from .limits import WithLimits

REQUIREMENT = "openvino>=2026.4"
EXPORT_AGAIN = "export it again: modelport export openvino MODEL OUT"
BEAMS = "beam_idx"  # of a model with state: which row of the last call each row goes on from
# What the parts of a model are called in a folder of optimum-intel, by what we call them.
NAMES = {
    "model": "openvino_model",
    ENCODER: "openvino_encoder_model",
    "decoder_model_merged": "openvino_decoder_model",
    "decoder_model": "openvino_decoder_model",
    "decoder_with_past_model": "openvino_decoder_with_past_model",
    EMBEDDING: "openvino_text_embeddings_model",
    "vision_encoder": "openvino_vision_embeddings_model",
    "video_encoder": "openvino_video_embeddings_model",
    "audio_encoder": "openvino_audio_encoder_model",
    "speech_encoder": "openvino_speech_encoder_model",
    "image_encoder": "openvino_image_encoder_model",
}
MODEL_FILE = f"{NAMES['model']}.xml"
LANGUAGE = "openvino_language_model"  # the decoder beside an embedding
_DTYPES = {
    "f64": "f64", "f32": "f32", "f16": "f16", "bf16": "bf16", "i64": "i64", "i32": "i32", "i16": "i16", "i8": "i8",
    "u8": "u8", "boolean": "bool",
}  # fmt: skip

_PRECISIONS = {"fp64": "f64", "fp32": "f32", "fp16": "f16", "bool": "boolean"}  # as results have them


def names_of(parts: Any) -> dict[str, str]:
    """What the files of these parts are called, without .xml."""
    found = {part: NAMES[part] for part in parts}
    if EMBEDDING in found and "decoder_model_merged" in found:
        found["decoder_model_merged"] = LANGUAGE
    return found


def find_parts(path: str | os.PathLike[str]) -> dict[str, Path]:
    """The `.xml` files that a path stands for, by what they are to the model: itself, or those of a folder that has no
    model of another format. Nothing where it stands for none."""
    path = Path(path)
    if path.suffix == ".xml" and not path.is_dir():
        return {"model": path}
    if not path.is_dir() or any(path.glob("*.onnx")) or any(path.glob("*.pte")):
        return {}
    found = {file.stem: file for file in sorted(path.glob("openvino_*.xml"))}
    if found and _artifact.is_half_replaced(os.fspath(path)):
        raise problem("E0103", f"{path}: an export into this folder was killed, or is not done", EXPORT_AGAIN)
    parts = {part: found[name] for part, name in NAMES.items() if name in found}
    one = "decoder_model" if "decoder_with_past_model" in parts else "decoder_model_merged"
    parts = {part: file for part, file in parts.items() if part == one or file.stem != NAMES[one]}
    if LANGUAGE in found:
        parts["decoder_model_merged"] = found[LANGUAGE]
    return parts


class IrFile(WithLimits):
    """One `.xml` file. It has what `Artifact` has of an `.onnx` file, as far as the two are alike."""

    def __init__(self, path: str | os.PathLike[str]):
        self.path = Path(path)
        if not self.path.is_file():
            raise problem("E0103", f"{path}: no such file", "name an .xml file, or the folder of an export")
        self.summary: dict[str, Any] = _Reader(self.path).summary
        limits = self.limits_record
        self._sizes = {row["name"]: [str(size) for size in row["shape"]] for row in limits.get("inputs", [])}

    @property
    def weights(self) -> Path:
        return self.path.with_suffix(".bin")

    @property
    def limits_record(self) -> dict[str, Any]:
        text = self.note("limits")
        found = {} if text is None else parse_json(text)
        return found if isinstance(found, dict) else {}

    @property
    def inputs(self) -> list[dict[str, Any]]:
        """Name, type and shape of each; a size is a number or what it is called."""
        return [row | {"shape": self._named(row["name"], row["shape"])} for row in self.summary["inputs"]]

    @property
    def outputs(self) -> list[dict[str, Any]]:
        """Those of the model: what it assumed of its data is none of them."""
        checks = {check["output"] for check in self.limits.checks} if self.limits else set()
        return [row for row in self.summary["outputs"] if row["name"] not in checks]

    @property
    def pasts(self) -> dict[str, list[str]]:
        """The inputs that became state, with their shapes."""
        taken = {row["name"] for row in self.summary["inputs"]}
        kept = {name for name, _ in self.limits.state} if self.limits else set()
        return {name: shape for name, shape in self._sizes.items() if name not in taken and name not in kept}

    @property
    def is_stateful(self) -> bool:
        """Whether it keeps the cache of a text itself."""
        return any(row["name"] == BEAMS for row in self.summary["inputs"])

    @property
    def takes_a_past(self) -> bool:
        return self.is_stateful or any(row["name"].startswith("past_") for row in self.summary["inputs"])

    @property
    def example_names(self) -> list[str]:
        text = self.note("example_names")
        return [name for name in parse_json(text) if isinstance(name, str)] if text else []

    def note(self, key: str) -> str | None:
        """A text that the exporter left: "source", "model_class", "dtype"."""
        return self.summary["metadata"].get(f"modelport.{key}")

    def refuse_other_weights(self) -> None:
        if self.summary["constants"] and not self.weights.is_file():
            what = f"{self.path}: {self.weights.name}, which has its weights, is missing"
            raise problem("E0103", what, "copy the whole folder: weights lie beside the model", EXPORT_AGAIN)

    def _named(self, name: str, shape: list[int]) -> list[str]:
        known = self._sizes.get(name, [])
        if len(known) == len(shape):
            return known
        return [f"{name}_{axis}" if size < 0 else str(size) for axis, size in enumerate(shape)]


def read_artifact(path: Path) -> Artifact | IrFile:
    """What a file of either format says of itself."""
    return IrFile(path) if path.suffix == ".xml" else Artifact(path)


def generates(parts: dict[str, Path]) -> bool:
    """Whether the files generate together: they say so, or one of them has a past."""
    files = [IrFile(path) for path in parts.values()]
    return any(file.note("generates") or file.takes_a_past for file in files)


class _Reader:
    """Goes through the text of a model once. A document type, which could name other files or grow without end, is
    refused."""

    def __init__(self, path: Path):
        self.path = path
        self.summary: dict[str, Any] = {"inputs": [], "outputs": [], "metadata": {}, "states": [], "constants": 0}
        self._operators: collections.Counter[str] = collections.Counter()
        self._open: list[str] = []
        self._layer: dict[str, str] = {}
        self._sizes: list[int] = []
        parser = expat.ParserCreate()
        parser.StartElementHandler, parser.EndElementHandler = self._start, self._end
        parser.CharacterDataHandler = self._text
        parser.StartDoctypeDeclHandler = self._refuse
        try:
            parser.Parse(path.read_bytes(), True)
        except (expat.ExpatError, ValueError) as error:
            raise self._broken(str(error)) from error
        if not self._operators:
            raise self._broken("it has no layers")
        self.summary["operators"] = dict(self._operators)

    def _refuse(self, *_: Any) -> None:
        raise self._broken("it has a document type")

    def _broken(self, why: str) -> Exception:
        return problem("E0103", f"{self.path} is no OpenVINO model: {why}", EXPORT_AGAIN)

    def _start(self, tag: str, given: dict[str, str]) -> None:
        self._open.append(tag)
        place = self._open[1:]
        if place == ["layers", "layer"]:
            self._layer = {"names": given.get("output_names") or given.get("name", "")}
            self._layer["type"] = given.get("type", "")
        elif place == ["layers", "layer", "data"]:
            self._layer |= given
        elif place[:2] == ["layers", "layer"] and tag == "port":
            self._sizes = []
            self._layer["precision"] = given.get("precision", "")
            self._layer["port_names"] = given.get("names", "")
        elif len(place) == 3 and place[:2] == ["rt_info", "framework"]:
            self.summary["metadata"][tag] = given.get("value", "")

    def _text(self, text: str) -> None:
        if self._open[-1:] == ["dim"] and text.strip():
            self._sizes.append(int(text))

    def _end(self, _tag: str) -> None:
        if self._open[1:] == ["layers", "layer"]:
            self._add(self._layer)
        self._open.pop()

    def _add(self, layer: dict[str, str]) -> None:
        kind = layer["type"]
        self._operators[kind] += kind not in ("Parameter", "Result", "Const")
        if kind == "Parameter":
            names, dtype = layer["port_names"] or layer["names"], layer.get("element_type", "")
            self.summary["inputs"].append(self._value(names, dtype))
        elif kind == "Result":
            precision = layer["precision"].lower()  # FP32, BF16, I64, BOOL
            self.summary["outputs"].append(self._value(layer["names"], _PRECISIONS.get(precision, precision)))
        elif kind == "Const":
            self.summary["constants"] += 1
        elif kind == "ReadValue":
            self.summary["states"].append(layer.get("variable_id", ""))

    def _value(self, names: str, dtype: str) -> dict[str, Any]:
        return {"name": names.split(",")[0], "dtype": _DTYPES.get(dtype, dtype), "shape": list(self._sizes)}
