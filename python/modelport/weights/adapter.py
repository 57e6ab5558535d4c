"""Adapters: a folder with LoRA weights and the name of the model that they change; merged when weights are made.

Names and settings are those of PEFT: `base_model.model.<module>.lora_A.weight` in adapter_model.safetensors."""

from __future__ import annotations

import dataclasses
import math
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from ..base.errors import ExportError, problem
from ..base.settings_file import read_settings
from ..hub.files import ADAPTER, ADAPTER_CONFIG, INDEX, SINGLE
from ..hub.folder import base_folder

_PREFIX = "base_model.model."
_PART = re.compile(r"(?P<module>.+)\.lora_(?P<part>A|B|embedding_A|embedding_B|magnitude_vector)(?:\.weight)?")
# Of settings that make other weights than those below; a value that is not false is refused.
_OTHER = (
    "target_parameters",
    "layer_replication",
    "trainable_token_indices",
    "lora_bias",
    "use_qalora",
    "megatron_config",
)
_CHANGE_THE_BASE = ("pissa", "olora", "corda", "loftq", "lora_ga")
_TASKS = {"SEQ_CLS": "text-classification", "TOKEN_CLS": "token-classification", "QUESTION_ANS": "question-answering"}
_HEADS = ("score", "classifier", "qa_outputs", "classification_head.out_proj", "classifier.out_proj")


def is_adapter(folder: Path) -> bool:
    """A folder with an adapter and without the weights of a model."""
    return (folder / ADAPTER_CONFIG).is_file() and not (folder / SINGLE).exists() and not (folder / INDEX).exists()


def base_of(folder: Path) -> Path:
    """The folder of the model itself: of an adapter, that of its base, which may lie on the hub."""
    if not is_adapter(folder):
        return folder
    settings = _settings(folder)
    named = settings.get("base_model_name_or_path")
    if not isinstance(named, str) or not named:
        what = f"{folder / ADAPTER_CONFIG} does not say which model it is an adapter of"
        raise problem("E0104", what, "add base_model_name_or_path to it: a folder, or a name of the hub")
    if not os.path.exists(named) and (folder / named).is_dir():
        named = os.fspath(folder / named)
    return base_folder(named, of=folder, revision=settings.get("revision"))


def task_of(folder: Path) -> str | None:
    """What an adapter was trained for, where its base has another head."""
    return _TASKS.get(str(_settings(folder).get("task_type"))) if is_adapter(folder) else None


def adapter_in(folder: Path) -> Adapter | None:
    return Adapter(folder) if is_adapter(folder) else None


@dataclasses.dataclass
class Change:
    """What is added to one weight: `scale` times the product of two thin matrices."""

    scale: float
    parts: dict[str, torch.Tensor] = dataclasses.field(default_factory=dict)

    def merged(self, weight: torch.Tensor, *, transposed: bool) -> torch.Tensor:
        """The new weight, computed in float32."""
        if "embedding_A" in self.parts:
            first, second, transposed = self.parts["embedding_A"], self.parts["embedding_B"], True
        else:
            first, second = self.parts["A"], self.parts["B"]
        product = second.float().flatten(1) @ first.float().flatten(1)
        product = product.T if transposed else product
        made = weight.float() + self.scale * product.reshape(weight.shape)
        size = self.parts.get("magnitude_vector")
        if size is None:
            return made.to(weight.dtype)
        rows = made.T if transposed else made  # the direction and the length of each row are kept apart
        rows = size.float()[:, None] / rows.norm(dim=1, keepdim=True) * rows
        return (rows.T if transposed else rows).to(weight.dtype)


class Adapter:
    """What an adapter changes: `changes` by weight, and `saved` weights that take the place of the base's."""

    def __init__(self, folder: Path):
        self.folder, self._settings = folder, _settings(folder)
        self._refuse_other_kinds()
        self.changes: dict[str, Change] = {}
        self.saved: dict[str, torch.Tensor] = {}
        for key, tensor in self._stored().items():
            self._sort_in(key.removeprefix(_PREFIX), tensor)
        lacking = [name for name, change in self.changes.items() if not _is_whole(change)]
        if lacking:
            raise problem("E0104", f"{folder / ADAPTER}: a half of the change of {lacking[0]} is missing", _AGAIN)

    def _sort_in(self, key: str, tensor: torch.Tensor) -> None:
        found = _PART.fullmatch(key)
        if found is None:
            if ".lora_" in key or "token_adapter" in key:
                raise self._refused(f"it has {key}")
            # Of a layer that is changed as well, PEFT saves the bias under another name.
            self.saved[key.replace(".base_layer.", ".").replace(".modules_to_save.", ".")] = tensor
            return
        module, part = found["module"], found["part"]
        rank = tensor.shape[0] if part in ("A", "embedding_A") else 0
        change = self.changes.setdefault(f"{module}.weight", Change(0.0))
        change.parts[part] = tensor
        if rank:
            change.scale = self._alpha(module) / (math.sqrt(rank) if self._settings.get("use_rslora") else rank)

    def _alpha(self, module: str) -> float:
        for pattern, alpha in (self._settings.get("alpha_pattern") or {}).items():
            if re.fullmatch(rf"(.*\.)?({pattern})", module):
                return float(alpha)
        return float(self._settings.get("lora_alpha", 8))

    def _refuse_other_kinds(self) -> None:
        kind = str(self._settings.get("peft_type", "LORA")).upper()
        if kind != "LORA":
            raise self._refused(f"it is a {kind}")
        others = [key for key in _OTHER if self._settings.get(key)]
        if others:
            raise self._refused(f"it uses {others[0]}")
        first = str(self._settings.get("init_lora_weights", "")).lower()
        if first.startswith(_CHANGE_THE_BASE):
            raise self._refused(f"its beginning ({first}) changed the weights of the base")

    def _refused(self, why: str) -> ExportError:
        return problem(
            "E0104",
            f"{self.folder}: only plain LoRA adapters are merged here, and {why}",
            "merge it with peft: PeftModel.from_pretrained(model, folder).merge_and_unload().save_pretrained(out)",
        )

    def _stored(self) -> dict[str, torch.Tensor]:
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        file = self.folder / ADAPTER
        if not file.is_file():
            raise problem("E0104", f"{file} is not here, and pickles are not read", "save the adapter anew with peft")
        try:
            return load_file(file)
        except (SafetensorError, OSError) as error:
            raise problem("E0104", f"{file}: {error}", _AGAIN) from error

    # --- in a model ---------------------------------------------------------------------------------------------------

    def fit(self, config: Any) -> None:
        """A head that was trained says how many labels there are."""
        for head in _HEADS:
            weight = self.saved.get(f"{head}.weight")
            if weight is not None and getattr(config, "num_labels", None) not in (None, weight.shape[0]):
                config.num_labels = weight.shape[0]

    def names_in(self, model: Any, ties: Mapping[str, str] | None = None) -> dict[str, str]:
        """What the weights of the adapter are called in a model: it may be the one without its head. What is known by
        several names changes under all of them (`ties`), unless it was trained as a whole, apart from the others."""
        state, prefix = model.state_dict(), f"{model.base_model_prefix}."
        found, lost = {}, []
        for name in (*self.changes, *self.saved):
            there = next((n for n in (name, name.removeprefix(prefix), prefix + name) if n in state), None)
            if there is not None:
                found[name] = there if self._is_of_a_head(name) else (ties or {}).get(there, there)
            elif name in self.changes or not self._is_of_a_head(name):
                lost.append(name)
        if lost:
            what = f"{self.folder} changes weights that {type(model).__name__} does not have: {', '.join(lost[:3])}"
            raise problem("E0104", what, "name the class that it was trained for: --task", _AGAIN)
        return found

    def _is_of_a_head(self, name: str) -> bool:
        """Trained as a whole, and left out where the model has none."""
        heads = self._settings.get("modules_to_save") or ()
        return any(head in name.split(".") for head in heads)

    def transposes(self, model: Any, name: str) -> bool:
        """Whether a weight lies with its inputs first."""
        module = model.get_submodule(name.rpartition(".")[0])
        if type(module).__name__ == "Conv1D":
            return True
        return not isinstance(module, torch.nn.Linear) and bool(self._settings.get("fan_in_fan_out"))

    @torch.no_grad()
    def merge_into(self, model: Any) -> None:
        """The same in a model that has its weights."""
        names = self.names_in(model)
        for name, change in self.changes.items():
            weight = model.get_parameter(names[name])
            weight.copy_(change.merged(weight, transposed=self.transposes(model, names[name])))
        for name, tensor in self.saved.items():
            if name not in names:
                continue
            before = model.get_parameter_or_buffer(names[name])
            if self._is_of_a_head(name) and isinstance(before, torch.nn.Parameter):
                path, _, leaf = names[name].rpartition(".")
                setattr(model.get_submodule(path), leaf, torch.nn.Parameter(tensor.to(before.dtype)))
            else:
                before.copy_(tensor)


_AGAIN = "download the adapter again"


def _is_whole(change: Change) -> bool:
    return {"A", "B"} <= change.parts.keys() or {"embedding_A", "embedding_B"} <= change.parts.keys()


def _settings(folder: Path) -> dict[str, Any]:
    return read_settings(folder / ADAPTER_CONFIG)
