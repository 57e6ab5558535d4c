"""Clients that open an exported folder: what each of them expects beside the graphs, and where.

A client is a module with four functions: `refuse_unknown` is asked before anything is exported, `part_names` says what
the client calls inputs and outputs, `rewrite_parts` exports anew what it divides otherwise, `write` turns a folder in
the default layout into the client's own."""

from __future__ import annotations

import importlib
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..artifacts.artifact import PARTS
from ..artifacts.staging import Staging
from ..base.errors import problem

_MODULES: Mapping[str, str] = {"genai": "genai", "transformers.js": "transformers_js"}
CLIENTS = tuple(_MODULES)


def refuse_unknown(client: str, config: Any, model_class: str | None = None) -> None:
    """Raises, with a way out, where the client cannot run a model of this transformers config. `model_class` is the
    name of the class that is exported, where that is not the one in the config."""
    _module(client).refuse_unknown(config, model_class)


def export_for_client(
    client: str,
    model: Any,
    inputs: Mapping[str, Any],
    folder: str | os.PathLike[str],
    config: Any = None,
    generation_config: Any = None,
) -> list[str]:
    """Exports a generative model into a folder that the client opens; gives notes on what is missing there. The other
    arguments are those of `export_for_generation`; without a config, onnxruntime-genai gets onnxruntime's operators
    and the logits that it reads."""
    from ..exporters.configs import OnnxConfig
    from ..exporters.onnx import OnnxExporter

    if config is None and client == "genai":
        config = OnnxConfig(operators="onnxruntime", last_logits=True)  # as it is run
    refuse_unknown(client, model.config, type(model).__name__)
    parts = OnnxExporter().export_for_generation(model, dict(inputs), config, generation_config)
    rename_parts(client, parts)
    with Staging(folder, is_file=False) as staging:
        parts.write(staging.folder)
        _link_others(staging.target, staging.folder)
        rewrite_parts(client, staging.folder, model, inputs, config)
        notes = write_contract(client, staging.folder, model.config, generation_config or model.generation_config)
        staging.commit()
    return notes


def _link_others(folder: Path, staged: Path) -> None:
    """Tokenizers and the like, which a client's module looks for beside the graphs."""
    for file in folder.glob("[!.]*"):
        ours = ".onnx" in file.suffix or file.name in PARTS
        if file.is_file() and not ours and not (staged / file.name).exists():
            try:
                os.link(file, staged / file.name)
            except OSError:  # not every file system has links
                shutil.copy2(file, staged / file.name)


def rename_parts(client: str, parts: Any) -> None:
    """Gives the inputs and outputs of what `export_for_generation` made the names that the client knows them by."""
    from .own_parts import renamed

    for name, program in parts.items():
        names = _module(client).part_names(parts.model, [*program.input_names, *program.output_names])
        if names:
            parts[name] = renamed(program, names)


def rewrite_parts(
    client: str,
    folder: str | os.PathLike[str],
    model: Any,
    inputs: Mapping[str, Any],
    config: Any = None,
    dtype: str | None = None,
) -> None:
    """Exports anew, and compares with PyTorch, the parts of a generative model that the client divides otherwise than
    the default layout does. `dtype` is that of the files which are meant, where there are several."""
    from .layout import Layout

    _module(client).rewrite_parts(Layout(Path(folder), model.config, dtype=dtype), model, inputs, config)


def write_contract(
    client: str, folder: str | os.PathLike[str], config: Any, generation_config: Any = None
) -> list[str]:
    """Turns the folder of an export into what the client opens; gives notes on what is missing there.

    `config` and `generation_config` are those of the model, as transformers has them."""
    from .layout import Layout

    return _module(client).write(Layout(Path(folder), config, generation_config))


def _module(client: str) -> Any:
    if client not in _MODULES:
        raise problem("E0306", f"{client} is no client that is known", *(f"--for {name}" for name in CLIENTS))
    return importlib.import_module(f".{_MODULES[client]}", __package__)
