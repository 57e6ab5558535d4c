"""Exported models, loaded and run: `modelport.load(folder)`."""

from __future__ import annotations

import os
from typing import Any

from ..base.errors import problem
from .folder import Folder, open_folder

__all__ = ["load", "open_folder"]


def load(folder: str | os.PathLike[str], *, threads: int | None = None, **session_options: Any) -> Any:
    """The model of an exported folder, or of one .onnx file.

    A generative model is an instance of its own transformers class: `generate` does all that it does in PyTorch. Any
    other model is called with its inputs by name and gives its outputs by name. `session_options` are attributes of
    onnxruntime's SessionOptions, or entries of its configuration: `**{"session.disable_prepacking": "1"}`."""
    return open_model(open_folder(folder), threads=threads, **session_options)


def open_model(folder: Folder, *, threads: int | None = None, **session_options: Any) -> Any:
    from ..checking.runner import needs_onnxruntime
    from .classes import generating_class

    needs_onnxruntime()
    _check_options(session_options)
    options = {"threads": threads or 0, **session_options}
    found = generating_class(folder)
    if not isinstance(found, str):
        from .generating import generating_model

        return generating_model(folder, found, options)
    from .plain import PlainModel
    from .session import Session

    return PlainModel(Session(folder.files["model"], options), folder.config, found)


def _check_options(options: dict[str, Any]) -> None:
    from onnxruntime import SessionOptions

    unknown = [name for name in options if "." not in name and not hasattr(SessionOptions, name)]
    if unknown:
        known = [name for name in vars(SessionOptions) if isinstance(vars(SessionOptions)[name], property)]
        what = f"onnxruntime's SessionOptions has no {', '.join(unknown)}"
        raise problem("E0301", what, f"it has: {', '.join(known)}" if known else "leave it out")
