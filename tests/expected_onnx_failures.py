"""Rows of the zoo whose ONNX does not work yet, each with its reason. A row that works must be taken off this list."""

from __future__ import annotations

EXPECTED: dict[str, str] = {}
