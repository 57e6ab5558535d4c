"""The model of an export: which class, which inputs, captured with its weights left in their files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from ..capturing import capture
from ..checking.eager import load_model, quiet_transformers, read_preprocessor
from ..checkpoint import Checkpoint, read_config
from ..errors import problem
from ..exporters.prepare import cast_leaf_tensors
from ..inputs import example_inputs, model_class

DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


def captured_folder(args: Any, folder: Path) -> tuple[Any, dict[str, Any]]:
    """The capture, and the example inputs that it was made with."""
    written = read_config(folder)
    Checkpoint(folder)
    if args.trust_remote_code and written.get("auto_map"):
        model = eager_model(args)
        inputs = _example(args, folder, model, None)
        captured = capture(model, inputs, dynamic=not args.no_dynamic_axes)
        return captured, inputs
    chosen, config = _class_and_config(args, folder, written)
    dtype = DTYPES.get(args.dtype)
    inputs = _example(args, folder, chosen, config)
    wanted = dtype or getattr(config, "dtype", None) or torch.float32
    inputs.update(cast_leaf_tensors(dict(inputs), dtype=wanted, device=torch.device("cpu")))
    options = {"dynamic": not args.no_dynamic_axes, "model_class": chosen, "dtype": dtype}
    captured = capture(folder, inputs, **options)
    captured.origin = {"model_class": chosen.__name__} | ({} if args.dtype is None else {"dtype": args.dtype})
    return captured, inputs


def eager_model(args: Any) -> Any:
    """The model as transformers loads it: what values are compared with."""
    folder = Path(args.model)
    written = read_config(folder)
    dtype = DTYPES.get(args.dtype)
    if args.trust_remote_code and written.get("auto_map"):
        return _remote_model(args, folder, written, dtype)
    return load_model(folder, _class_and_config(args, folder, written)[0], dtype)


def _example(args: Any, folder: Path, model_or_class: Any, config: Any) -> dict[str, Any]:
    return example_inputs(
        model_or_class,
        config,
        batch=args.batch,
        sequence=args.sequence,
        preprocessor=read_preprocessor(folder),
        task=args.task,
    )


def _class_and_config(args: Any, folder: Path, written: dict[str, Any]) -> tuple[Any, Any]:
    import transformers

    named = [name for name in written.get("architectures") or [] if not hasattr(transformers, name)]
    if written.get("auto_map") and named and args.task is None:
        raise problem(
            "E0301",
            f"{named[0]} is no class of transformers: its Python code is in {folder}",
            "read that code, and if you trust it: --trust-remote-code",
        )
    chosen = model_class(written, args.task)
    try:
        with quiet_transformers():
            return chosen, chosen.config_class.from_pretrained(folder)
    except Exception as error:  # configs refuse values in any way
        raise problem(
            "E0103", f"{folder / 'config.json'}: {type(error).__name__}: {error}", "download it again"
        ) from error


def _remote_model(args: Any, folder: Path, written: dict[str, Any], dtype: torch.dtype | None) -> Any:
    """A model whose code lies in the folder; the user said that it may run."""
    import transformers

    autos = [name for name in written["auto_map"] if name.startswith("AutoModel")]
    named = set(written.get("architectures") or [])
    fitting = [name for name in autos if str(written["auto_map"][name]).rpartition(".")[2] in named]
    if not autos:
        raise problem("E0301", f"{folder}: auto_map in config.json names no model", "export without --trust-remote-code")
    auto = getattr(transformers, (fitting or autos)[0])
    settings = {} if dtype is None else {"dtype": dtype}
    with quiet_transformers():
        return auto.from_pretrained(folder, trust_remote_code=True, **settings).eval()
