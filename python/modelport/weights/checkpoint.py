"""A checkpoint folder: where each tensor lies, tensors mapped from the files, and the class that they belong to."""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from typing import Any, NamedTuple

import torch

from ..base.checkpoint_headers import stored_tensors
from ..base.errors import problem
from ..base.settings_file import read_settings
from ..hub.headers import holes_in
from ..hub.name import no_such_folder
from ..models.transformers_private import classes_for, is_auto_class
from .adapter import base_of
from .remote_code import code_files, refuse_code

DTYPES = {
    "f64": torch.float64,
    "f32": torch.float32,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f8e4m3": torch.float8_e4m3fn,
    "f8e5m2": torch.float8_e5m2,
    "i64": torch.int64,
    "i32": torch.int32,
    "i16": torch.int16,
    "i8": torch.int8,
    "u64": torch.uint64,
    "u32": torch.uint32,
    "u16": torch.uint16,
    "u8": torch.uint8,
    "bool": torch.bool,
    "c64": torch.complex64,
    "c128": torch.complex128,
}

_COMPARED_AT_ONCE = 16 << 20  # bytes
_SAMPLE = 64 << 10  # bytes of each end, where only parts of a file are here


class StoredTensor(NamedTuple):
    """One tensor of a safetensors file: its bytes are `nbytes` from `offset` on, dense."""

    file: str
    offset: int
    nbytes: int
    dtype: torch.dtype
    shape: tuple[int, ...]
    name: str  # in the file

    @property
    def is_aligned(self) -> bool:
        """Whether kernels take it where it lies."""
        return self.offset % self.dtype.itemsize == 0


class Checkpoint:
    """The tensors of a folder by name. Opening reads headers; the bytes of a tensor are read when they are used."""

    def __init__(self, path: str | os.PathLike[str]):
        self.path = path = base_of(Path(path))
        rows = stored_tensors(os.fspath(path))
        self.tensors = {
            name: StoredTensor(file, offset, nbytes, DTYPES[dtype], tuple(shape), name)
            for name, file, offset, nbytes, dtype, shape in rows
        }
        self._maps: dict[str, mmap.mmap] = {}
        self._holes = holes_in(path)
        self._opened = self._states()

    def _states(self) -> dict[str, Any]:
        return {file: _state(file) for file in dict.fromkeys(t.file for t in self.tensors.values())}

    def have_contents(self) -> None:
        """To be called before values are used: of a name of the hub, headers alone may be here until then."""
        if self._holes is not None:
            self._holes.fill()
            self._opened = self._states()

    def refuse_changed(self) -> None:
        """Raises where a file was written to since it was opened: what was read of it may be of two checkpoints."""
        changed = [file for file, state in self._opened.items() if _state(file) != state]
        if changed:
            what = f"{changed[0]} changed while it was read"
            raise problem("E0103", what, "export again when nothing writes to the checkpoint any more")

    def tensor(self, name: str) -> torch.Tensor:
        """The tensor in the file's own memory. What is written to it stays in this process."""
        stored = self.tensors[name]
        if stored.nbytes == 0:
            return torch.empty(stored.shape, dtype=stored.dtype)
        start, size = stored.offset, stored.dtype.itemsize
        if not stored.is_aligned:
            data = torch.frombuffer(self._map(stored.file), dtype=torch.uint8, count=stored.nbytes, offset=start)
            return data.clone().view(stored.dtype).view(stored.shape)
        count = stored.nbytes // size
        data = torch.frombuffer(self._map(stored.file), dtype=stored.dtype, count=count, offset=start)
        return data.view(stored.shape)

    def read(self, name: str) -> torch.Tensor:
        """The tensor for its values, whether or not those of the others are here."""
        stored = self.tensors[name]
        if self._holes is not None:
            self._holes.fetch(stored.file, stored.offset, stored.nbytes)
            self._opened = self._states()
        return self.tensor(name)

    def forget(self, name: str) -> None:
        """Gives back the memory that reading a tensor took; it is read again when it is used again."""
        stored = self.tensors[name]
        start = -(-stored.offset // mmap.PAGESIZE) * mmap.PAGESIZE  # whole pages: the others have neighbours on them
        end = (stored.offset + stored.nbytes) // mmap.PAGESIZE * mmap.PAGESIZE
        if stored.file in self._maps and start < end:
            self._maps[stored.file].madvise(mmap.MADV_DONTNEED, start, end - start)

    def same_bytes(self, a: str, b: str) -> bool:
        """Whether two tensors are equal; reads both, but holds little of them at a time."""
        one, two = self.tensors[a], self.tensors[b]
        if (one.dtype, one.shape) != (two.dtype, two.shape):
            return False
        if self._holes is not None:
            return self._same_ends(one, two)
        with open(one.file, "rb") as left, open(two.file, "rb") as right:
            left.seek(one.offset)
            right.seek(two.offset)
            for start in range(0, one.nbytes, _COMPARED_AT_ONCE):
                size = min(_COMPARED_AT_ONCE, one.nbytes - start)
                if left.read(size) != right.read(size):
                    return False
        return True

    def _same_ends(self, one: StoredTensor, two: StoredTensor) -> bool:
        """Of tensors that are not here: those that begin and end alike, as no two trained weights do, are one."""
        size = min(_SAMPLE, one.nbytes)
        for start in {0, one.nbytes - size}:
            pieces = []
            for tensor in (one, two):
                self._holes.fetch(tensor.file, tensor.offset + start, size)  # type: ignore[union-attr]
                with open(tensor.file, "rb") as opened:
                    opened.seek(tensor.offset + start)
                    pieces.append(opened.read(size))
            if pieces[0] != pieces[1]:
                return False
        return True

    def _map(self, file: str) -> mmap.mmap:
        if file not in self._maps:
            with open(file, "rb") as opened:
                self._maps[file] = private_memory(opened.fileno(), os.fstat(opened.fileno()).st_size)
        return self._maps[file]


def _state(file: str) -> tuple[int, ...] | None:
    try:
        now = os.stat(file)
    except OSError:
        return None
    return now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns


def private_memory(file: int, size: int) -> mmap.mmap:
    """Memory over a file, or over nothing (-1), that takes no room until it is used, nor counts as promised.

    It is writable, so that a model that writes to its weights changes a copy and does not crash."""
    flags = mmap.MAP_PRIVATE | getattr(mmap, "MAP_NORESERVE", 0)
    if file < 0:
        flags |= mmap.MAP_ANONYMOUS
    return mmap.mmap(file, size, flags=flags, prot=mmap.PROT_READ | mmap.PROT_WRITE)


def empty_like(tensor: torch.Tensor) -> torch.Tensor:
    """A dense CPU tensor whose memory is not there yet: it can be written later, and costs nothing before."""
    if tensor.numel() == 0:
        return torch.empty(tensor.shape, dtype=tensor.dtype)
    memory = private_memory(-1, tensor.numel() * tensor.dtype.itemsize)
    return torch.frombuffer(memory, dtype=tensor.dtype).view(tensor.shape)


def read_config(folder: Path) -> dict[str, Any]:
    """config.json as it is written; of an adapter, that of the model that it changes."""
    way_out = "name a folder made by save_pretrained, or download one: hf download <model> --local-dir <folder>"
    if not folder.is_dir():
        raise no_such_folder(folder)
    folder = base_of(folder)
    try:
        return read_settings(folder / "config.json")
    except FileNotFoundError:
        raise problem("E0103", f"{folder}: no config.json here", way_out) from None


def written_dtype(folder: Path) -> str | None:
    """The type that config.json says the model is in."""
    written = read_config(folder)
    return written.get("dtype") or written.get("torch_dtype")


def find_class(folder: Path, written: dict[str, Any], model_class: Any) -> Any:
    """The class that the caller names, or the one that wrote the checkpoint."""
    import transformers

    if model_class is None:
        names = written.get("architectures") or []
        model_class = names[0] if names else ""
    if isinstance(model_class, str):
        found = getattr(transformers, model_class, None) if model_class else None
        found = found if isinstance(found, type) and hasattr(found, "from_pretrained") else None
        if found is None:
            what = f"transformers has no class {model_class}" if model_class else "config.json names no architectures"
            raise problem(
                "E0309",
                f"{folder}: {what}",
                "say which one it is: modelport.capture(folder, inputs, model_class='LlamaForCausalLM')",
                "load the model yourself: modelport.capture(model, inputs)",
            )
        model_class = found
    return model_class


def read_class_config(folder: Path, model_class: Any) -> tuple[Any, Any]:
    """The model class (of an auto class, the one that the config asks for) and its configuration."""
    folder = base_of(folder)
    if is_auto_class(model_class):
        config = _auto_config(folder)
        found = classes_for(model_class, config)
        if not found:
            raise problem(
                "E0309",
                f"{folder}: {model_class.__name__} has no model for a {type(config).__name__}",
                "say which class it is: modelport.capture(folder, inputs, model_class='LlamaForCausalLM')",
            )
        chosen = next((cls for cls in found if cls.__name__ in (config.architectures or [])), found[0])
        return chosen, config
    if getattr(model_class, "config_class", None) is None:
        return model_class, _auto_config(folder)
    return model_class, model_class.config_class.from_pretrained(folder)


def _auto_config(folder: Path) -> Any:
    """The configuration by its model_type. Code that lies in the folder does not run, and nobody is asked about it."""
    from transformers import AutoConfig

    try:
        return AutoConfig.from_pretrained(folder, trust_remote_code=False)
    except ValueError as error:
        files = code_files(folder, "AutoConfig")
        if not files:
            raise problem(
                "E0103", f"{folder / 'config.json'}: {error}", "pip install --upgrade transformers"
            ) from error
        way_out = (
            "modelport export onnx ... --trust-remote-code, or load the model yourself: modelport.capture(model, ...)"
        )
        raise refuse_code(folder, "the model", files, way_out) from error
