"""The headers of safetensors files, read without torch."""

from __future__ import annotations

from .. import _artifact
from .errors import ExportError

_artifact.set_exception_class(ExportError)

stored_tensors = _artifact.stored_tensors
