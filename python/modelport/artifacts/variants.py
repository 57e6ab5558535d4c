"""One model in several types in one folder: the ends of the files' names tell them apart, as transformers.js has it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ..base.errors import problem

# The most exact first: that is what a folder stands for where nobody says which.
SUFFIXES = {
    "fp32": "",
    "fp16": "_fp16",
    "bf16": "_bf16",
    "q8": "_quantized",
    "int8": "_int8",
    "uint8": "_uint8",
    "q4": "_q4",
    "q4f16": "_q4f16",
    "bnb4": "_bnb4",
}
# What we write, and other names for it.
WRITTEN = ("fp32", "fp16", "bf16", "q8", "q4", "q4f16")
ALSO = {"int8": "q8", "int4": "q4"}


def split_name(stem: str) -> tuple[str, str]:
    """What a file is to its model, and its type: `model_q4` is the `model` in `q4`."""
    for name, suffix in SUFFIXES.items():
        if suffix and stem.endswith(suffix):
            return stem.removesuffix(suffix), name
    return stem, "fp32"


def ending_of(dtype: str | None) -> str | None:
    """How the names of its files end; None where no type is named."""
    return None if dtype is None else SUFFIXES.get(ALSO.get(dtype, dtype))


def named(stem: str, suffix: str) -> str:
    return f"{stem}{suffix}.onnx"


def types_of(files: Iterable[Path]) -> list[str]:
    """The types that there are among these files."""
    found = {split_name(file.stem)[1] for file in files}
    return [name for name in SUFFIXES if name in found]


def of_type(files: list[Path], asked: str | None, where: Path) -> list[Path]:
    """The files of one type: the one that is asked for, else the first that there is."""
    there = types_of(files)
    wanted = next((name for name in (asked, ALSO.get(asked or "")) if name in there), None)
    if asked is not None and wanted is None:
        kinds = ", ".join(there)
        raise problem("E0306", f"{where} has no files of type {asked}", f"it has: {kinds}", "export it again")
    return [file for file in files if split_name(file.stem)[1] == (wanted or there[0])]
