"""Which class of transformers an exported folder belongs to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..artifacts.ir import read_artifact
from ..base.errors import problem
from .folder import Folder
from .program_folder import CALLED_ONCE, generates


def generating_class(folder: Folder) -> Any:
    """The class whose `generate` runs on these files; for a model that is only called, why that is so, as a text."""
    found = _class_or_reason(folder)
    if folder.in_parts and isinstance(found, str):
        raise problem(
            "E0309",
            f"{folder.path}: {found}, and its files only make sense for one that generates",
            "copy the config.json of the model that was exported into the folder",
            "pip install --upgrade transformers",
        )
    return found


def _class_or_reason(folder: Folder) -> Any:
    if folder.methods and not generates(folder):
        return CALLED_ONCE
    names = folder.class_names()
    if not names:
        return "it has no config.json that names its class under architectures"
    if not folder.in_parts and not _gives_logits(folder):
        return f"{names[0]} gives no logits in this export"
    cls: Any = next((cls for cls in _classes(names, folder) if isinstance(cls, type)), None)
    if cls is None:
        return f"transformers has no class {' or '.join(names)}"
    if not cls.can_generate():
        return f"{cls.__name__} cannot generate: it has no head that gives the next token"
    if not folder.in_parts and (folder.config or {}).get("is_encoder_decoder"):
        return f"{cls.__name__} is an encoder-decoder in one file, of which the encoder cannot run on its own"
    return cls


def _classes(names: Sequence[str], folder: Folder) -> Iterator[Any]:
    """Those of transformers, and those of others that its Auto classes were told of."""
    import transformers

    yield from (getattr(transformers, name, None) for name in names)
    from transformers.models.auto import configuration_auto, modeling_auto

    configs, model_type = configuration_auto.CONFIG_MAPPING, (folder.config or {}).get("model_type")
    if model_type not in configs:
        return
    kind = type(modeling_auto.MODEL_MAPPING)
    for mapping in [value for value in vars(modeling_auto).values() if isinstance(value, kind)]:
        cls = mapping.get(configs[model_type], None)
        if getattr(cls, "__name__", None) in names:
            yield cls


def _gives_logits(folder: Folder) -> bool:
    if folder.methods:
        return True
    return any(row["name"] == "logits" for row in read_artifact(folder.files["model"]).summary["outputs"])


def cannot_generate(folder: Any, reason: str) -> Exception:
    ways = ["copy the config.json of the model into the folder"] if "config.json" in reason else []
    if "has no class" in reason:
        ways.append("tell transformers of a class of your own: AutoModelForCausalLM.register(ItsConfig, ItsClass)")
    return problem(
        "E0311",
        f"the model in {folder} cannot generate: {reason}",
        *ways,
        "call it in Python: modelport.load(folder)(**inputs)",
        "export the class that generates: modelport export onnx MODEL OUT --task text-generation",
    )
