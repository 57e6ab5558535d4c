"""A folder of sentence-transformers: which modules it has, and the model of them."""

from __future__ import annotations

import dataclasses
import json
import warnings
from pathlib import Path
from typing import Any

import torch

from ..base.errors import ExportError, problem
from ..base.settings_file import read_settings
from ..capturing.captured import Captured
from ..capturing.model import capture_model
from ..lazy.captured import CheckpointCaptured
from ..lazy.checkpoint_weights import CheckpointWeights
from ..lazy.folder import open_model
from ..weights import lazy_weights
from ..weights.checkpoint import read_config
from ..weights.loading import load_model
from .modules import ACTIVATIONS, MODES, Dense, Normalize, Pooling, SentenceModel

MODULES = "modules.json"
TASK = "sentence-similarity"
_ENCODER_ALONE = "export the transformer alone: --task feature-extraction"


@dataclasses.dataclass
class SentenceFolder:
    """Where the transformer lies, and what comes after it: (kind, folder) in this order."""

    path: Path
    transformer: Path
    after: list[tuple[str, Path]]

    def pooling(self) -> Pooling:
        kind, folder = self.after[0] if self.after else ("", self.path)
        if kind != "Pooling":  # a plain transformer: the mean of its tokens, as sentence-transformers takes it
            return Pooling(("mean",))
        settings = _settings(folder)
        named = settings.get("pooling_mode")
        modes = [named] if isinstance(named, str) else list(named or ())
        modes = modes or [mode for mode, flag in MODES.items() if settings.get(flag)] or ["mean"]
        unknown = [str(mode) for mode in modes if mode not in MODES]
        if unknown:
            raise _unknown(folder / "config.json", f"the pooling {unknown[0]}")
        return Pooling(tuple(modes))

    def rest(self, dtype: torch.dtype) -> list[torch.nn.Module]:
        known = [one for one in self.after if one[0] != "Pooling"]
        return [_dense(folder, dtype) if kind == "Dense" else Normalize() for kind, folder in known]


def is_sentence_folder(folder: Path) -> bool:
    return (folder / MODULES).is_file()


def read_folder(folder: Path) -> SentenceFolder:
    """Refuses what is not known here. A folder without modules is that of the transformer."""
    if not is_sentence_folder(folder):
        return SentenceFolder(folder, folder, [])
    rows = _rows(folder / MODULES)
    kinds = [(row["type"].rpartition(".")[2], folder / row.get("path", "")) for row in rows]
    if not kinds or kinds[0][0] != "Transformer":
        raise _unknown(folder / MODULES, f"{kinds[0][0] if kinds else 'nothing'} as the first module")
    after = [one for one in kinds[1:] if one[0] != "Dropout"]  # which does nothing after training
    for number, (kind, _) in enumerate(after):
        if kind not in ("Pooling", "Dense", "Normalize") or (kind == "Pooling" and number > 0):
            raise _unknown(folder / MODULES, f"the module {kind}")
    return SentenceFolder(folder, kinds[0][1], after)


def opened(found: SentenceFolder, model_class: Any, dtype: Any) -> SentenceModel:
    """The model over weights that stay in their files, where that can be."""
    try:
        transformer = open_model(found.transformer, model_class=model_class, dtype=dtype)
    except ExportError as error:
        if not _lacks_a_pooler_alone(error):
            raise
        warnings.warn(
            f"{found.path}: the weights are loaded, because those of a layer that is not used are missing", stacklevel=2
        )
        transformer = load_model(found.transformer, model_class, dtype)
    model = joined(found, transformer)
    weights = lazy_weights.of(transformer)
    if weights is not None:
        lazy_weights.register(model, weights)
    return model


def _lacks_a_pooler_alone(error: ExportError) -> bool:
    """Checkpoints of models with another head have none, and embeddings of tokens do not need it."""
    notes = error.diagnostics[0]["notes"] if error.code == "E0104" else []
    others = [note for note in notes if not note.startswith(("missing pooler.", "unused "))]
    return bool(notes) and not others


def capture_sentences(model: SentenceModel, inputs: dict[str, Any], **options: Any) -> Captured:
    """Without reading weights that stay in their files, unless the capture needs their values."""
    weights = lazy_weights.of(model)
    if not isinstance(weights, CheckpointWeights):
        return capture_model(model, inputs, **options)
    try:
        with weights.unread():
            captured = capture_model(model, inputs, **options)
    except Exception as error:  # whatever it is, a capture with values either works or reports it
        weights.read_because(error)
        captured = capture_model(model, inputs, **options)
    return CheckpointCaptured(captured, weights.of(model))


def load_sentences(folder: Path, model_class: Any = None, dtype: Any = None) -> SentenceModel:
    """The model with its weights, as transformers loads them."""
    found = read_folder(folder)
    model_class = model_class or encoder_class(read_config(found.transformer))
    return joined(found, load_model(found.transformer, model_class, dtype))


def encoder_class(written: dict[str, Any]) -> Any:
    """The class without a head that a transformer here is loaded as: of two sides, the one that reads."""
    import transformers
    from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

    named = [name for name in written.get("architectures") or [] if name.endswith("EncoderModel")]
    entry = MODEL_MAPPING_NAMES.get(written.get("model_type"), ())
    names = named or ([entry] if isinstance(entry, str) else list(entry))
    if not named and written.get("is_encoder_decoder"):
        names = [name.removesuffix("Model") + "EncoderModel" for name in names]
    found = next((getattr(transformers, name) for name in names if hasattr(transformers, name)), None)
    if found is None:
        what = f"transformers has no class without a head for a model of type {written.get('model_type')}"
        raise problem("E0309", what, "pip install --upgrade transformers")
    return found


def joined(found: SentenceFolder, transformer: Any) -> SentenceModel:
    """The transformer with the modules of the folder."""
    return SentenceModel(transformer, found.pooling(), found.rest(transformer.dtype)).eval()


def _dense(folder: Path, dtype: torch.dtype) -> Dense:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    settings = _settings(folder)
    activation = str(settings.get("activation_function", "Tanh")).rpartition(".")[2]
    if activation not in ACTIVATIONS:
        raise _unknown(folder / "config.json", f"the activation {activation}")
    for key in ("module_input_name", "module_output_name"):
        if settings.get(key) not in (None, "sentence_embedding"):
            raise _unknown(folder / "config.json", f"a module that changes {settings[key]}")
    file = folder / "model.safetensors"
    if not file.is_file():
        way = "save the model anew with sentence-transformers, which writes safetensors: model.save(folder)"
        raise problem("E0104", f"{folder} has no model.safetensors, and pickles are not read", way)
    try:
        made = Dense(settings)
        made.load_state_dict(load_file(file))
    except (SafetensorError, RuntimeError, KeyError, ValueError) as error:
        raise problem("E0104", f"{file} and {folder / 'config.json'} differ: {error}", "download both again") from error
    return made.to(dtype)


def _settings(folder: Path) -> dict[str, Any]:
    try:
        return read_settings(folder / "config.json")
    except FileNotFoundError:
        raise problem("E0104", f"{folder}: no config.json here", "download the whole model again") from None


def _rows(path: Path) -> list[dict[str, Any]]:
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise problem("E0104", f"{path}: {error}", "download it again") from error
    good = isinstance(rows, list) and all(isinstance(row, dict) and isinstance(row.get("type"), str) for row in rows)
    inside = good and all(_lies_below(row.get("path", "")) for row in rows)
    if not inside:
        raise problem("E0104", f"{path}: not a list of modules in folders below", "download it again")
    return rows


def _lies_below(path: Any) -> bool:
    return isinstance(path, str) and not Path(path).is_absolute() and ".." not in Path(path).parts


def _unknown(path: Path, what: str) -> ExportError:
    return problem("E0309", f"{path}: {what} is not known here", _ENCODER_ALONE)
