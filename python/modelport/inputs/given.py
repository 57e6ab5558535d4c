"""Inputs that the user gives in a file: tensors by name, or Python code of the user's own that makes them."""

from __future__ import annotations

import difflib
import inspect
import os
import runpy
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from ..base.errors import ExportError, problem

_KINDS = "a .safetensors or .npz file, or a .py file with inputs = {...} or a function inputs()"


def read_inputs(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The inputs of a model by name, as a file has them."""
    path = Path(path)
    read = _READERS.get(path.suffix)
    if read is None:
        raise problem("E0318", f"{path} is no kind of file that inputs are read from", f"pass {_KINDS}")
    if not path.is_file():
        raise problem("E0318", f"{path}: no such file", f"name {_KINDS}")
    found = read(path)
    if not isinstance(found, Mapping) or not found or not all(isinstance(name, str) for name in found):
        what = f"{path} gives {_kind_of(found)}, and inputs are a dict from names to values"
        raise problem("E0318", what, 'inputs = {"input_ids": torch.tensor([[101, 102]])}')
    return {name: _as_tensors(value) for name, value in found.items()}


def check_names(inputs: Mapping[str, Any], model_or_class: Any, path: object) -> None:
    """Refuses a name that the model does not know, also where it would take any without a word."""
    cls: Any = model_or_class if isinstance(model_or_class, type) else type(model_or_class)
    parameters = inspect.signature(cls.forward).parameters.values()
    plain = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    known = [p.name for p in parameters if p.kind in plain and p.name != "self"]
    for name in inputs if known else ():
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            ways = [f"you may mean {close[0]}"] if close else []
            raise problem(
                "E0301", f"{path}: {cls.__name__} takes no input {name!r}", *ways, f"it takes: {', '.join(known)}"
            )


def _safetensors(path: Path) -> Any:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return load_file(path)
    except (SafetensorError, OSError) as error:
        raise _unreadable(path, error) from error


def _npz(path: Path) -> Any:
    import zipfile

    import numpy as np

    try:
        with np.load(path, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except (OSError, ValueError, AttributeError, zipfile.BadZipFile) as error:
        raise _unreadable(path, error) from error


def _python(path: Path) -> Any:
    try:
        names = runpy.run_path(os.fspath(path))
        if "inputs" not in names:
            raise problem("E0318", f"{path} has no name inputs", "write inputs = {...} or def inputs(): ... into it")
        found = names["inputs"]
        return found() if callable(found) else found
    except ExportError:
        raise
    except Exception as error:  # the user's code may fail in any way
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
        at = f":{lines[-1]}" if lines else ""
        raise problem("E0318", f"{path}{at}: {type(error).__name__}: {error}", "correct the file") from error


def _unreadable(path: Path, error: Exception) -> ExportError:
    first = (str(error).splitlines() or [type(error).__name__])[0]
    return problem("E0318", f"{path} cannot be read: {first}", "write it anew")


def _as_tensors(value: Any) -> Any:
    """Arrays of numpy become tensors, wherever they stand."""
    if isinstance(value, dict):
        return {key: _as_tensors(item) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(_as_tensors, value))
    return torch.tensor(value) if type(value).__module__ == "numpy" else value


def _kind_of(value: Any) -> str:
    return "nothing" if isinstance(value, Mapping) and not value else f"a {type(value).__name__}"


_READERS: dict[str, Callable[[Path], Any]] = {".safetensors": _safetensors, ".npz": _npz, ".py": _python}
