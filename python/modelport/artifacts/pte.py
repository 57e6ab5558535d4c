"""What a `.pte` file says of itself, read without torch and without ExecuTorch."""

from __future__ import annotations

import os
from typing import Any

from .. import _artifact
from ..base.errors import problem


def read_program(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Methods with inputs, outputs, operators, delegates and arenas; constant methods; constants in bytes."""
    read = getattr(_artifact, "read_executorch", None)
    if read is None:
        raise problem(
            "E0301",
            f"{path}: this modelport was built without ExecuTorch's schemas and cannot read it",
            "pip install --no-deps executorch==1.5.1, and install modelport again from its source folder: "
            "pip install --no-build-isolation .",
        )
    return read(os.fspath(path))
