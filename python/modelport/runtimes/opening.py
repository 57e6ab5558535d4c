"""Which runtime runs an artifact: one row for each kind of file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from . import executorch, openvino
from .onnx_file import OnnxFile
from .onnxruntime import check_options, needs_onnxruntime
from .runner import Runner


class Runtime(NamedTuple):
    """`check` raises where the runtime is not installed, or does not know an option."""

    check: Callable[[Mapping[str, Any]], None]
    open: Callable[[Path, Mapping[str, Any]], Runner]


def _check_onnxruntime(options: Mapping[str, Any]) -> None:
    needs_onnxruntime()
    check_options(options)


def _open_onnx(path: Path, options: Mapping[str, Any]) -> Runner:
    return OnnxFile(path, options)


def _open_program(path: Path, _options: Mapping[str, Any]) -> Runner:
    return executorch.ProgramSession(path)


def _open_ir(path: Path, options: Mapping[str, Any]) -> Runner:
    return openvino.IrSession(path, options)


RUNTIMES: dict[str, Runtime] = {
    ".onnx": Runtime(_check_onnxruntime, _open_onnx),
    ".pte": Runtime(executorch.check_options, _open_program),
    ".xml": Runtime(openvino.check_options, _open_ir),
}


def runtime_of(path: Path) -> Runtime:
    """A file of another name is taken for ONNX, which says what it is not."""
    return RUNTIMES.get(path.suffix, RUNTIMES[".onnx"])


def open_runner(path: Path, options: Mapping[str, Any]) -> Runner:
    return runtime_of(path).open(path, options)


class Opening:
    """Files that are opened with the same options. onnxruntime begins at once, in a thread: it does without Python
    while it reads weights and arranges them, which takes seconds that others need to import their modules."""

    def __init__(self, paths: Iterable[Path], options: Mapping[str, Any]):
        self._options = options
        self._begun: dict[Path, Future[Runner]] = {}
        ahead = [path for path in paths if path.suffix == ".onnx"]
        if ahead:
            import onnxruntime  # noqa: F401 (in the thread it could meet modules that are being imported)

            with_one_thread = ThreadPoolExecutor(1)
            self._begun = {path: with_one_thread.submit(open_runner, path, options) for path in ahead}
            with_one_thread.shutdown(wait=False)

    def runner(self, path: Path) -> Runner:
        """The file, once it is open; raises what opening it raised."""
        begun = self._begun.pop(path, None)
        return open_runner(path, self._options) if begun is None else begun.result()

    def runners(self, files: Mapping[str, tuple[Path, str | None]]) -> dict[str, Runner]:
        """A runner for each file, or for each method of one, which is then loaded once."""
        found: dict[str, Runner] = {}
        loaded: dict[Path, executorch.ProgramSession] = {}
        for role, (path, method) in files.items():
            if method is None:
                found[role] = self.runner(path)
            else:
                found[role] = session = executorch.ProgramSession(path, method, loaded.get(path))
                loaded.setdefault(path, session)
        return found
