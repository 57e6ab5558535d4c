"""The folder of an export: which file does what follows from its name. Nothing is loaded here, torch neither."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

from ..artifacts.artifact import DECODERS, EMBEDDING, ENCODER, EXPORT_AGAIN, FEATURES, Artifact, find_models
from ..artifacts.variants import split_name
from ..base.errors import problem
from ..base.printable import python_text
from ..base.settings_file import read_settings


@dataclasses.dataclass(frozen=True)
class Folder:
    path: Path
    files: dict[str, Path]  # by role, which is the file's name without .onnx
    config: dict[str, Any] | None
    methods: dict[str, str] = dataclasses.field(default_factory=dict)  # by role, where a file has several

    @property
    def decoder(self) -> str | None:
        """The file that gives the next token; in the folder of a model that does no such thing, its only file."""
        return next((name for name in DECODERS if name in self.files), None)

    @property
    def prefill(self) -> str | None:
        """The file that reads the prompt where the decoder can only go on after it."""
        return "decoder_model" if self.decoder == "decoder_with_past_model" and "decoder_model" in self.files else None

    @property
    def encoder(self) -> str | None:
        return ENCODER if ENCODER in self.files else None

    @property
    def embedding(self) -> str | None:
        return EMBEDDING if EMBEDDING in self.files else None

    @property
    def features(self) -> list[str]:
        return [name for name in FEATURES if name in self.files]

    @property
    def in_parts(self) -> bool:
        """Files that only make sense together."""
        return self.decoder != "model" and self.decoder is not None

    def used(self) -> list[str]:
        """The roles of the files that are opened."""
        names = (*self.features, self.encoder, self.embedding, self.prefill, self.decoder)
        return [name for name in names if name is not None]

    def class_names(self) -> list[str]:
        named = (self.config or {}).get("architectures")
        return [name for name in named if isinstance(name, str)] if isinstance(named, list) else []


def open_folder(path: str | os.PathLike[str], dtype: str | None = None) -> Folder:
    """Looks at the folder of an export, or at one .onnx file; what is not whole is refused. `dtype` is for a folder
    with files of several types."""
    path = Path(path)
    if path.is_file() and path.suffix == ".pt2":
        way = f'in Python: modelport.load_pt2("{path}").run(...)'
        raise problem("E0106", f"{path} is a .pt2 archive, which is not run this way", way)
    if path.is_file() and path.suffix != ".onnx":
        raise problem("E0106", f"{path} is no ONNX file", "name the folder of an export, or an .onnx file")
    found = find_models(path, dtype)
    single = path.is_file() or len(found) == 1
    files = {"model": found[0]} if path.is_file() else {split_name(file.stem)[0]: file for file in found}
    home = path.parent if path.is_file() else path
    if home.name == "onnx" and not (home / "config.json").exists():  # transformers.js keeps the files one below
        home = home.parent
    folder = Folder(home, files, read_config(home))
    if folder.decoder is None:
        if not single:
            names = ", ".join(file.name for file in found)
            raise problem("E0106", f"{path} has several models: {names}", "name one of them")
        folder = dataclasses.replace(folder, files={"model": found[0]})
    _check_parts(folder)
    _refuse_of_genai(folder)
    for role in folder.used():
        Artifact(folder.files[role]).refuse_other_weights()
    return folder


def _check_parts(folder: Folder) -> None:
    lacks = None
    if (folder.encoder or folder.embedding) and not folder.in_parts:
        lacks = "decoder_model_merged.onnx"
    elif folder.decoder == "decoder_with_past_model" and folder.prefill is None:
        lacks = "decoder_model.onnx"
    elif (folder.config or {}).get("is_encoder_decoder") and folder.in_parts and folder.encoder is None:
        lacks = "encoder_model.onnx"
    if lacks is not None:
        have = ", ".join(sorted(file.name for file in folder.files.values()))
        raise problem("E0103", f"{folder.path}: {lacks} is missing beside {have}", EXPORT_AGAIN)


def _refuse_of_genai(folder: Folder) -> None:
    """There an encoder also makes the keys and values of the cross-attention, which `generate` does not hand over."""
    if folder.encoder is None or not folder.in_parts:
        return
    given = [row["name"] for row in Artifact(folder.files[folder.encoder]).summary["outputs"]]
    if any(name.startswith("present") for name in given):
        raise problem(
            "E0106",
            f"{folder.path} is divided as only onnxruntime-genai runs it",
            f"in Python: onnxruntime_genai.Model({python_text(folder.path)}), see docs/clients.md",
            "for modelport.load and modelport run, export it without --for: modelport export onnx MODEL OUT",
        )


def read_config(folder: Path) -> dict[str, Any] | None:
    try:
        return read_settings(folder / "config.json", EXPORT_AGAIN)
    except FileNotFoundError:
        return None
