"""Which runtime runs an artifact: one row for each kind of file. torch is imported when a file is run, not before."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from .sessions import LoadedFile, check_options, load_file, needs_onnxruntime, threads_asked_for

if TYPE_CHECKING:
    from .executorch import ProgramSession
    from .runner import Runner


class Runtime(NamedTuple):
    """`check` raises where the runtime is not installed, or does not know an option. One that does without torch begins
    while torch is imported."""

    check: Callable[[Mapping[str, Any]], None]
    open: Callable[[Path, Mapping[str, Any]], Runner]
    needs_torch: bool = True


def _check_onnxruntime(options: Mapping[str, Any]) -> None:
    needs_onnxruntime()
    check_options(options)


def _check_executorch(options: Mapping[str, Any]) -> None:
    from . import executorch

    executorch.check_options(options)


def _check_openvino(options: Mapping[str, Any]) -> None:
    from . import openvino

    openvino.check_options(options)


def _open_onnx(path: Path, options: Mapping[str, Any]) -> Runner:
    return _runner_of(path, load_file(path, options))


def _open_program(path: Path, _options: Mapping[str, Any]) -> Runner:
    from .executorch import ProgramSession

    return ProgramSession(path)


def _open_ir(path: Path, options: Mapping[str, Any]) -> Runner:
    from .openvino import IrSession

    return IrSession(path, options)


RUNTIMES: dict[str, Runtime] = {
    ".onnx": Runtime(_check_onnxruntime, _open_onnx, needs_torch=False),
    ".pte": Runtime(_check_executorch, _open_program),
    ".xml": Runtime(_check_openvino, _open_ir),
}


def runtime_of(path: Path) -> Runtime:
    """A file of another name is taken for ONNX, which says what it is not."""
    return RUNTIMES.get(path.suffix, RUNTIMES[".onnx"])


def _runner_of(path: Path, loaded: LoadedFile) -> Runner:
    from .onnx_file import OnnxFile

    return OnnxFile(path, loaded)


class Opening:
    """Files that are opened with the same options. onnxruntime begins at once, in a thread: it does without Python
    while it reads weights and arranges them, which takes seconds that others need to import their modules."""

    def __init__(self, paths: Iterable[Path], options: Mapping[str, Any]):
        self._options = options
        self._begun: dict[Path, Future[LoadedFile]] = {}
        ahead = [path for path in paths if not runtime_of(path).needs_torch]
        if ahead:
            import onnxruntime  # noqa: F401 (in the thread it could meet modules that are being imported)

            settings = {**options, "threads": options.get("threads") or threads_asked_for()}
            thread = ThreadPoolExecutor(1)
            self._begun = {path: thread.submit(load_file, path, settings) for path in ahead}
            thread.shutdown(wait=False)

    def runner(self, path: Path) -> Runner:
        """The file, once it is open; raises what opening it raised."""
        begun = self._begun.pop(path, None)
        return runtime_of(path).open(path, self._options) if begun is None else _runner_of(path, begun.result())

    def runners(self, files: Mapping[str, tuple[Path, str | None]]) -> dict[str, Runner]:
        """A runner for each file, or for each method of one, which is then loaded once."""
        found: dict[str, Runner] = {}
        loaded: dict[Path, ProgramSession] = {}
        for role, (path, method) in files.items():
            if method is None:
                found[role] = self.runner(path)
            else:
                found[role] = loaded[path] = _method_of(path, method, loaded.get(path))
        return found


def _method_of(path: Path, method: str, loaded: ProgramSession | None) -> ProgramSession:
    from .executorch import ProgramSession

    return ProgramSession(path, method, loaded)
