"""ExecuTorch's runtime in a process of its own: a file that it does not like may end the process that runs it."""

from __future__ import annotations

import io
import pickle
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any, BinaryIO

import torch


class _Pickler(pickle.Pickler):
    """Tensors as their bytes: torch writes an archive for each, and there are tens of thousands."""

    def reducer_override(self, value: Any) -> Any:
        if type(value) is not torch.Tensor or not value.is_contiguous():
            return NotImplemented
        return _tensor, (value.reshape(-1).view(torch.uint8).numpy().tobytes(), value.dtype, tuple(value.shape))


def _tensor(data: bytes, dtype: torch.dtype, shape: tuple[int, ...]) -> torch.Tensor:
    if not data:
        return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(bytearray(data), dtype=dtype).reshape(shape)


def _send(stream: BinaryIO, message: Any) -> None:
    buffer = io.BytesIO()
    _Pickler(buffer).dump(message)
    data = buffer.getvalue()
    stream.write(struct.pack("<Q", len(data)) + data)
    stream.flush()


def _receive(stream: BinaryIO) -> Any:
    head = stream.read(8)
    if len(head) < 8:
        raise EOFError
    return pickle.loads(stream.read(struct.unpack("<Q", head)[0]))


class RuntimeDied(Exception):
    """The process of the runtime is gone, with what it had printed."""


class RuntimeProcess:
    """Loads a file and calls its methods; a process that died is started again. What it prints goes to `log`."""

    def __init__(self, log: BinaryIO | None = None) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._log = log

    def run(
        self,
        path: Path,
        calls: list[tuple[str, list[Any]]],
        *,
        data: Path | None = None,
        methods_share_arenas: bool = False,
        custom_operators: bool = False,
    ) -> list[list[Any]]:
        """The outputs of each call, all of them on one load of the file."""
        if self._process is None or self._process.poll() is not None:
            command = [sys.executable, str(Path(__file__).resolve())]
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log)
        assert self._process.stdin is not None and self._process.stdout is not None
        files = str(path), None if data is None else str(data)
        _send(self._process.stdin, (files, calls, methods_share_arenas, custom_operators))
        try:
            outputs, error = _receive(self._process.stdout)
        except EOFError:
            raise RuntimeDied(f"the runtime ended with code {self._process.wait()}") from None
        if error is not None:
            raise RuntimeError(error)
        return outputs

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()


def serve() -> None:
    # Not executorch.runtime: that imports ExecuTorch's compiler, which takes seconds and many packages.
    from executorch.extension.pybindings import _C

    while True:
        try:
            (path, data), calls, share, custom = _receive(sys.stdin.buffer)
        except EOFError:
            return
        try:
            if custom:
                package = Path(_C.__file__).parents[2]
                torch.ops.load_library(package / "extension/llm/custom_ops/libcustom_ops_aot_lib.so")
            if share:
                program = _C._load_program(path, data_path=data)
                methods = {name: program.load_method(name) for name, _ in calls}
                message = [methods[name](inputs) for name, inputs in calls], None
            else:
                module = _C._load_for_executorch(path, data)
                message = [module.run_method(name, inputs) for name, inputs in calls], None
        except Exception as error:
            message = None, str(error)
        _send(sys.stdout.buffer, message)


if __name__ == "__main__":
    import executorch_process  # by its name, which both sides know their tensors by

    executorch_process.serve()
