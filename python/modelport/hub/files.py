"""Which files of a repository are needed: settings, tokenizers and one form of the weights, of the many that it has."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from contextlib import suppress
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

CONFIG, SINGLE, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
MODULES, ADAPTER_CONFIG, ADAPTER = "modules.json", "adapter_config.json", "adapter_model.safetensors"

# Of the folder itself; what tokenizers and processors are made of.
_SETTINGS = (
    "*.json", "*.jinja", "*.model", "*.spm", "*.tiktoken", "tokenizer*", "vocab.*", "merges.*", "spiece.*",
    "sentencepiece.*", "special_tokens_map*", "added_tokens*", "*.vocab",
)  # fmt: skip
_BELOW = ("additional_chat_templates/*.jinja",)
# Weights in other forms have files of these names, too.
_NO_SETTINGS = (
    "*.index.json",
    "*.safetensors",
    "*.bin",
    "*.msgpack",
    "*.h5",
    "*.onnx*",
    "*.gguf",
    "*.pt",
    "*.pth",
    "*.zip",
)
_OTHER_TYPE = re.compile(r"_(fp16|bnb4|q4|q4f16|q8|int8|uint8|quantized)\.onnx")  # the same model once more
_PICKLES = ("pytorch_model*.bin", "*.pt", "*.pth", "*.ckpt")


def settings(files: Iterable[str], *, code: bool) -> list[str]:
    """Everything but weights. Python code is among it only where the user trusts it."""
    known = list(files)
    of_modules = ("*/config.json", "*/*.safetensors") if MODULES in known else ()  # of sentence-transformers
    found = []
    for file in known:
        if file == INDEX or any(fnmatch(file, pattern) for pattern in _BELOW):
            found.append(file)
        elif "/" in file:
            if file.count("/") == 1 and file[0].isdigit() and any(fnmatch(file, pattern) for pattern in of_modules):
                found.append(file)
        elif file.endswith(".py"):
            found += [file] if code else []
        elif _any(file, _SETTINGS) and not _any(file, _NO_SETTINGS):
            found.append(file)
    return found


def weights_in(folder: Path) -> list[str]:
    """The same of a folder; none where its index cannot be read, which whoever opens it says better."""
    with suppress(OSError, ValueError, AttributeError):
        index = json.loads((folder / INDEX).read_bytes()) if (folder / INDEX).exists() else None
        return weights(os.listdir(folder), index)
    return []


def weights(files: Iterable[str], index: dict[str, Any] | None) -> list[str]:
    """The files with the weights, in the order in which transformers looks for them; `index` is that of shards."""
    known = set(files)
    if SINGLE in known:
        return [SINGLE]
    if index is not None:
        named = index.get("weight_map")
        shards = set(named.values()) if isinstance(named, dict) else set()
        return sorted(shard for shard in shards if isinstance(shard, str) and "/" not in shard and shard in known)
    return [ADAPTER] if ADAPTER in known and ADAPTER_CONFIG in known else []


def pickles(files: Iterable[str]) -> list[str]:
    return [file for file in files if "/" not in file and _any(file, _PICKLES)]


def exported(files: Iterable[str], ending: str | None = None) -> list[str]:
    """The files of an artifact that lies on the hub: those of the folder, or where transformers.js has them below. Of
    these, names end in the type; `ending` asks for another than the plain one."""
    known = list(files)
    found = [file for file in known if "/" not in file and _any(file, ("*.onnx", "*.onnx_data*", "*.pte", "*.ptd"))]
    if any(file.endswith((".onnx", ".pte")) for file in found):
        return found
    below = [file for file in known if file.count("/") == 1 and _any(file, ("onnx/*.onnx", "onnx/*.onnx_data*"))]
    asked = [file for file in below if ending and f"{ending}.onnx" in file]
    plain = [file for file in below if not _OTHER_TYPE.search(file)]
    return asked or plain or [file for file in known if _any(file, ("openvino_*.xml", "openvino_*.bin"))]


def _any(file: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch(file, pattern) for pattern in patterns)
