"""Export to OpenVINO: the ONNX model as OpenVINO's own reader takes it, with caches as state."""

from __future__ import annotations

import dataclasses
import functools
import os
import tempfile
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import torch

from ..artifacts.ir import MODEL_FILE, names_of
from ..artifacts.limits import Limits
from ..artifacts.staging import Staging
from ..base.errors import problem
from ..base.versions import OLDEST
from ..generation.components import Components
from ..runtimes.openvino import IrSession, needs_openvino
from ..runtimes.openvino_conversion import convert, save
from .base import HfExporter
from .configs import OnnxConfig, OpenVINOConfig
from .onnx import OnnxExporter
from .onnx_program import OnnxProgram


class OpenVINOExporter(HfExporter):
    """Captures a model and gives an OpenVINO model of it."""

    required_packages: ClassVar[list[str]] = ["torch"]
    min_versions: ClassVar[dict[str, str]] = OLDEST

    def validate_environment(self) -> None:
        super().validate_environment()
        needs_openvino()

    def export(
        self,
        model: torch.nn.Module | str | os.PathLike[str],
        sample_inputs: MutableMapping[str, Any],
        config: OpenVINOConfig | dict[str, Any] | None = None,
    ) -> OpenVINOProgram:
        config = OpenVINOConfig.given(config)
        program = OpenVINOProgram(OnnxExporter().export(model, sample_inputs, onnx_config(config)), config)
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
    ) -> OpenVINOComponents:
        """The models that generate together, by name: `components.save(folder)` writes what `modelport.load` and
        optimum-intel open. A decoder takes any number of tokens after any past."""
        config = OpenVINOConfig.given(config)
        parts = OnnxExporter().export_for_generation(model, sample_inputs, onnx_config(config), generation_config)
        return OpenVINOComponents(parts, config)


def onnx_config(config: OpenVINOConfig) -> OnnxConfig:
    """How the ONNX model on the way is made."""
    settings = {"dynamic": config.dynamic, "dynamic_shapes": config.dynamic_shapes, "join_lists": config.join_lists}
    return OnnxConfig(dtype=config.dtype, **settings)


class OpenVINOProgram:
    """An OpenVINO model: `save` writes it, a call runs it, `model` is openvino's own object."""

    file_name = MODEL_FILE

    def __init__(self, onnx: OnnxProgram, config: OpenVINOConfig):
        self.onnx, self.config = onnx, config
        self.captured, self.renamed = onnx.captured, onnx.renamed

    @property
    def limits(self) -> Limits:
        return self.onnx.limits

    @property
    def input_names(self) -> list[str]:
        return [port.get_any_name() for port in self.model.inputs]

    @property
    def output_names(self) -> list[str]:
        checks = {check["output"] for check in self.limits.checks}
        return [name for port in self.model.outputs if (name := port.get_any_name()) not in checks]

    @functools.cached_property
    def model(self) -> Any:
        """An openvino.Model, whose weights may be in a file that has no name any more."""
        with self._converted() as model:
            return model

    @contextmanager
    def _converted(self, beside: Path | None = None) -> Iterator[Any]:
        """Weights go through a file, on the disk that the model is for."""
        with tempfile.TemporaryDirectory(dir=beside, prefix=".onnx-") as folder:
            file = Path(folder) / "model.onnx"
            self.onnx.write(file)
            yield convert(file, stateful=self.config.stateful)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Into a folder, which takes its place when it is whole; or as a file `.xml` with its weights in `.bin`."""
        path = Path(path)
        if path.suffix != ".xml":
            with Staging(path, is_file=False, model=MODEL_FILE) as staging:
                self.write(staging.folder / MODEL_FILE)
                staging.commit()
            return path
        with tempfile.TemporaryDirectory(dir=path.absolute().parent, prefix=".openvino-") as folder:
            for file in self.write(Path(folder) / path.name)[::-1]:
                os.replace(file, path.with_suffix(file.suffix))
        return path

    def write(self, path: Path) -> list[Path]:
        """As `save`, into a folder that is nobody's yet."""
        with self._converted(path.parent) as model:
            return save(model, path, compress_to_fp16=self.config.compress_to_fp16)

    def __call__(self, **inputs: Any) -> tuple[torch.Tensor, ...]:
        """Runs the model in OpenVINO; the results in the order of `output_names`. Buffers that the model writes to are
        kept from call to call."""
        if self._session.file.is_stateful:
            what = "this model keeps the cache of a text, which modelport.load runs"
            raise problem("E0314", what, "components.save(folder), then modelport.load(folder)")
        tensors = self.captured.tensors_by_name(inputs, renamed=self.onnx.names_of_inputs)
        named = {self.onnx.names_of_inputs[name]: tensor for name, tensor in tensors.items()}
        taken = {name: tensor for name, tensor in named.items() if name in self._session.inputs}
        results = self._session.tensors(taken)
        return tuple(results[name] for name in self._session.outputs)

    def reset(self) -> None:
        """Buffers as they were when the model was exported."""
        self._session.reset()

    @functools.cached_property
    def _session(self) -> IrSession:
        self._folder = tempfile.TemporaryDirectory(prefix="modelport-")  # the runtime reads weights as it needs them
        return IrSession(self.write(Path(self._folder.name) / MODEL_FILE)[0], {})


class OpenVINOComponents(Components):
    """OpenVINO models by what they are to the whole; `save` writes a folder as optimum-intel does."""

    def __init__(self, parts: Components, config: OpenVINOConfig):
        if "decoder_with_past_model" in parts:  # what one model leaves behind the other takes: no state of either
            config = dataclasses.replace(config, stateful=False)
        dict.__init__(self, {name: OpenVINOProgram(program, config) for name, program in parts.items()})
        self.model = parts.model

    def save(self, folder: str | os.PathLike[str], **_changes: Any) -> Path:
        with Staging(folder, is_file=False, model=MODEL_FILE) as staging:
            self.write(staging.folder)
            staging.commit()
        return Path(folder)

    def write(self, folder: Path, suffix: str = "", **_changes: Any) -> None:
        names = names_of(self)
        for part, program in self.items():
            program.write(folder / f"{names[part]}{suffix}.xml")
        self.write_settings(folder)
