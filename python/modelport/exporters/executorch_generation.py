"""Models that generate as one ExecuTorch program: a method that keeps its cache itself, and numbers about the model
that ExecuTorch's own runner for language models reads."""

from __future__ import annotations

import copy
import dataclasses
import json
import os
import shutil
import tempfile
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, ClassVar

import torch

from ..artifacts.pte import NOTES
from ..artifacts.staging import Staging
from ..base.dtypes import float_dtype
from ..base.errors import ExportError
from ..capturing.arguments import refuse_training
from ..capturing.captured import Captured
from ..generation.custom_attention import CacheSettings, takes_custom
from ..generation.static_decoder import StaticDecoder, WholeDecoder, keeps_a_cache
from ..generation.watching import refuse_if_it_cannot_generate
from ..lazy.captured import CheckpointCaptured
from ..lazy.checkpoint_weights import CheckpointWeights
from ..lazy.entry import capture
from ..lazy.folder import open_model
from ..models.locks import only_user
from ..weights import lazy_weights
from .configs import ExecutorchConfig
from .executorch import ExecutorchProgram, write_programs
from .executorch_bounds import longest_sequence
from .executorch_constants import constant_methods
from .patches import apply_patches


class ExecutorchComponents(dict[str, ExecutorchProgram]):
    """Methods of one program by name. `save` writes a `.pte` file, or a folder with one that `modelport.load` opens."""

    file_name: ClassVar[str] = "model.pte"

    def __init__(
        self, programs: Mapping[str, ExecutorchProgram], model: Any, constants: Mapping[str, Any], notes: list[str]
    ):
        super().__init__(programs)
        self.model, self.constant_methods = model, dict(constants)
        self.notes = [*notes, *(note for program in programs.values() for note in program.notes)]
        self.files: list[Path] = []

    @property
    def methods(self) -> list[str]:
        return list(self)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """What was at `path` stays whole if this fails."""
        with Staging(path, model=self.file_name) as staging:
            self.write(staging.folder / staging.name)
            if not staging.is_file:
                self.write_configs(staging.folder)
            self.files = staging.commit()[:1]
        return Path(path)

    def write(self, path: Path) -> dict[str, Any]:
        """The program alone, into a folder that is nobody's yet."""
        notes = next(iter(self.values())).origin() | {"generates": "yes"}
        constants = self.constant_methods | {NOTES: json.dumps(notes, sort_keys=True)}
        written = write_programs(path, self, constants, checks_as_outputs=False)
        self.files = [Path(file) for file in written["files"]]
        self.written = written["methods"]
        return written

    def write_configs(self, folder: Path) -> None:
        config = copy.deepcopy(self.model.config)
        config.architectures = [type(self.model).__name__]
        config.save_pretrained(folder)
        if getattr(self.model, "generation_config", None) is not None:
            self.model.generation_config.save_pretrained(folder)

    @property
    def buffer(self) -> bytes:
        """The whole file."""
        with tempfile.TemporaryDirectory() as folder:
            self.write(Path(folder) / self.file_name)
            return (Path(folder) / self.file_name).read_bytes()

    def write_to_file(self, open_file: IO[bytes]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            self.write(Path(folder) / self.file_name)
            with open(Path(folder) / self.file_name, "rb") as written:
                shutil.copyfileobj(written, open_file)


def export_for_generation(
    model: Any, _sample_inputs: Mapping[str, Any], config: ExecutorchConfig
) -> ExecutorchComponents:
    if isinstance(model, str | os.PathLike):
        model = open_model(model, dtype=float_dtype(config.dtype))
    refuse_if_it_cannot_generate(model)
    refuse_training(model)
    components = export_decoder(model, config)
    if config.output_path is not None:
        components.save(config.output_path)
    return components


def export_decoder(model: Any, config: ExecutorchConfig) -> ExecutorchComponents:
    """`forward(input_ids, cache_position)` of a decoder, whose cache is in the program."""
    length = longest_sequence(config.max_seq_len, model.config)
    settings = CacheSettings(length, config.use_custom_sdpa, config.use_custom_kv_cache)
    config = dataclasses.replace(config, max_seq_len=length)
    with only_user(model), apply_patches("executorch"):
        if keeps_a_cache(model):
            program, notes = _cached(model, settings, config)
        else:
            program, notes = _uncached(model, config)
    constants = constant_methods(model, program, settings, cached="cache_position" in program.input_names)
    return ExecutorchComponents({"forward": program}, model, constants, notes)


def _cached(model: Any, settings: CacheSettings, config: ExecutorchConfig) -> tuple[ExecutorchProgram, list[str]]:
    decoder = StaticDecoder(model, settings).eval()
    notes = []
    if settings.custom_sdpa and not takes_custom(model):
        notes.append(f"{type(model).__name__} has an attention of its own: use_custom_sdpa makes no difference to it")
    if not config.disable_dynamic_shapes and settings.length > 1:
        shapes = {"input_ids": {1: "seq"}, "cache_position": {0: "seq"}}
        try:
            captured = captured_part(model, decoder, decoder.example(), shapes, config)
            if _takes_one_token(captured):
                return ExecutorchProgram(captured, config, model.config), notes
            why = "the model does something else for one token than for several"
        except ExportError as error:
            why = str(error.diagnostics[0]["what"]) if error.diagnostics else str(error)
        notes.append(f"tokens are read one by one, those of a prompt too: {why}")
    captured = captured_part(model, decoder, decoder.example(tokens=1), None, config)
    return ExecutorchProgram(captured, dataclasses.replace(config, dims=None), model.config), notes


def _uncached(model: Any, config: ExecutorchConfig) -> tuple[ExecutorchProgram, list[str]]:
    decoder = WholeDecoder(model).eval()
    captured = captured_part(model, decoder, decoder.example(), {"input_ids": {1: "seq"}}, config)
    note = (
        f"{type(model).__name__} keeps no keys and values that a program could: it reads the whole text for each token"
    )
    return ExecutorchProgram(captured, config, model.config), [note]


def _takes_one_token(captured: Captured) -> bool:
    return all(row["lo"] <= 1 for row in captured.lazy_program.dims() if row["name"] == "seq")


def captured_part(
    model: Any,
    part: torch.nn.Module,
    inputs: Mapping[str, Any],
    dynamic_shapes: Any,
    config: ExecutorchConfig,
) -> Captured:
    """A module that runs the model, or a part of it; weights that are in files stay there."""
    weights = lazy_weights.of(model)
    if not isinstance(weights, CheckpointWeights):
        return capture(part, inputs, dynamic_shapes=dynamic_shapes, dtype=float_dtype(config.dtype))
    lazy_weights.register(part, weights)
    try:
        with weights.unread():
            captured = capture(part, inputs, dynamic_shapes=dynamic_shapes)
        if weights.refused:
            warnings.warn(f"{weights.folder}: conditions on sizes that only values could decide are kept", stacklevel=3)
    finally:
        lazy_weights.unregister(part)
    return CheckpointCaptured(captured, weights.of(part))
