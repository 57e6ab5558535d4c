"""Which rows of the zoo `make test` shows; `make test-zoo`, which sets WHOLE_ZOO=1, shows every row.

Those by which torch is shown all that archives have (`loaded_by_torch`), those that fail for a known reason, and a
sixth of the others, by their names: the same ones on every machine."""

from __future__ import annotations

import os
import zlib
from collections.abc import Container

import expected_failures
import expected_onnx_failures

from .loaded_by_torch import choice

_PARTS = 6


def is_in_sample(name: str, always: Container[str] = ()) -> bool:
    if os.environ.get("WHOLE_ZOO") or name in always or name in choice():
        return True
    if name in expected_failures.EXPECTED or name in expected_onnx_failures.EXPECTED:
        return True
    return zlib.crc32(name.encode()) % _PARTS == 0
