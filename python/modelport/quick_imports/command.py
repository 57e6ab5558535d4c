"""What an export leaves out when it imports torch and transformers, so that the command does not wait for it.

Importing one model class of transformers takes longer than exporting it, and most of that time goes into parts that no
export runs. They are left out here, in the process of a command and nowhere else:

- torch._dynamo, the compiler, with sympy and torch's distributed tensors, which it imports. A shell takes its place.
  Its decorators tell the compiler what to make of a function, so the shell's give the function back; whatever else
  somebody asks of it imports the compiler after all.
- torch's meta kernels that are written in Python, with sympy, which they import to look at plain numbers. Those in C++
  do for nearly every model; a capture that fails is done again with all of them (`deferred`).
- torch.distributed says that it is not available, as it does in builds of torch that are made without it.
- scipy, sklearn and torchao are not found while the modules are imported that all models share, where only losses,
  assisted generation and checkpoints of torchao use them. Afterwards they are: some models compute with scipy.
- transformers looks through the sources of all its models for the names that they offer, twice: once is enough. While
  it does, and shortly before, a thread has the system load torch's libraries.
- torch asks for the module of a frame where operators are registered, and Python goes through the files of all modules
  to answer. The frame's own names say it.
- transformers reads the records of all installed packages to learn which of them has a module, and asks for a few
  modules that have the name of their package. The records of those are enough.
- transformers compiles the expressions that rename the weights of all its models. Those of one model are enough.
- Garbage is not collected while modules are made, all of which stay.

It happens only in a process that is a command and ends with it (`allow`), and only beside releases of torch and
transformers that it was tried with (`gate`); anywhere else imports are plain. Where a command fails for a reason of
ours, it starts over without all this. MODELPORT_PLAIN_IMPORTS=1 does so from the beginning. docs/quick-imports.md
tells users."""

from __future__ import annotations

import ctypes
import gc
import importlib
import importlib.util
import inspect
import os
import pickle
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import metadata
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any

from .deferred import META_KERNELS, InShells, Shell, ShellOfOperators
from .gate import untested_packages
from .patterns import compile_when_asked
from .records import PackagesByModule

_PLAIN = "MODELPORT_PLAIN_IMPORTS"
_HIDDEN = ("scipy", "sklearn", "torchao")
_allowed = False  # whether this process ends with its command
_quick = False  # whether something was left out


def allow() -> None:
    """To be called by the command of a process: nothing of what follows outlives it."""
    global _allowed
    _allowed = True


def import_quickly() -> None:
    """Imports torch and what all models of transformers share; does nothing where torch is imported already, or where
    plain imports are what is safe."""
    if not _allowed or "torch" in sys.modules or os.environ.get(_PLAIN) or untested_packages():
        return
    global _quick
    _quick = True
    with _no_garbage_collection(), _modules_of_frames():
        scan = _ScanOnce()
        with _hidden(_HIDDEN):
            sys.meta_path[:0] = [scan, _LibrariesMeanwhile(scan.meanwhile)]
            importlib.import_module("transformers")
            scan.meanwhile.join()
            torch = _torch()
            torch.distributed.is_available = _no
            importlib.import_module("transformers.modeling_layers")
        _forget_hidden()
        compile_when_asked(importlib.import_module("transformers.core_model_loading"))


def is_quick() -> bool:
    """Whether something was left out in this process."""
    return _quick


def start_over(console: Any) -> None:
    """Runs the command of this process from its beginning, with nothing left out; returns if nothing was."""
    if _quick:
        console.note("something failed; starting over with all of torch and transformers")
        sys.stdout.flush()
        sys.stderr.flush()
        os.environ[_PLAIN] = "1"
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


def _torch() -> Any:
    spec = importlib.util.find_spec("torch")
    if spec is None or not spec.submodule_search_locations:
        return importlib.import_module("torch")  # which fails as it should
    folder = spec.submodule_search_locations[0]
    compiler, primitives = os.path.join(folder, "_dynamo"), os.path.join(folder, "_prims")
    shells = [
        Shell("torch._prims", primitives, alone="rng_prims"),  # what the meta kernels are made of
        Shell(META_KERNELS),
        Shell("torch._dynamo", compiler, alone="_trace_wrapped_higher_order_op", known=_DECORATORS),
    ]
    sys.modules.update({shell.__name__: shell for shell in shells})
    sys.meta_path.insert(0, InShells())
    torch: Any = importlib.import_module("torch")
    importlib.import_module("torch._prims.rng_prims")  # gives torch.Generator its type
    torch._prims, torch._meta_registrations = shells[:2]
    ShellOfOperators(torch.ops, "prims")
    return torch


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()  # modules are no garbage: later collections need not look at them
        gc.enable()


@contextmanager
def _modules_of_frames() -> Iterator[None]:
    names: Any = inspect
    search = names.getmodule

    def module_of(thing: Any, filename: str | None = None) -> Any:
        if inspect.isframe(thing):
            module = sys.modules.get(thing.f_globals.get("__name__", ""))
            if module is not None and vars(module) is thing.f_globals:
                return module
        return search(thing, filename)

    names.getmodule = module_of
    try:
        yield
    finally:
        names.getmodule = search


class _Meanwhile:
    """A thread that is started once, if ever."""

    def __init__(self, work: Callable[[], None]):
        self._work = work
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, daemon=True)
            self._thread.start()

    def join(self) -> None:
        if self._thread is not None:
            self._thread.join()


def _load_libraries() -> None:
    """Has the system load torch's C++ libraries, as `import torch` is about to. A call through ctypes lets other
    threads run meanwhile, which an import does not."""
    spec = importlib.util.find_spec("torch")
    if spec is None or not spec.submodule_search_locations:
        return
    folder = Path(spec.submodule_search_locations[0]) / "lib"
    load = ctypes.CDLL(None).dlopen
    load.restype, load.argtypes = ctypes.c_void_p, (ctypes.c_char_p, ctypes.c_int)
    # In this order and with these flags torch loads them itself; one that is not there is left to torch.
    load(os.fsencode(folder / "libtorch_global_deps.so"), os.RTLD_NOW | os.RTLD_GLOBAL)
    load(os.fsencode(folder / "libtorch_cpu.so"), os.RTLD_NOW)


@contextmanager
def _hidden(packages: tuple[str, ...]) -> Iterator[None]:
    """None in sys.modules is Python's own way to say that there is no such package."""
    absent = [name for name in packages if name not in sys.modules]
    sys.modules.update(dict.fromkeys(absent))  # type: ignore[arg-type]
    try:
        yield
    finally:
        for name in absent:
            del sys.modules[name]


def _forget_hidden() -> None:
    """transformers keeps its answers to which packages there are."""
    known = sys.modules["transformers.utils.import_utils"]
    for package in _HIDDEN:
        answer: Any = getattr(known, f"is_{package}_available", None)
        if hasattr(answer, "cache_clear"):
            answer.cache_clear()


class _LibrariesMeanwhile(MetaPathFinder):
    """Starts to load torch's libraries where, until transformers looks through its sources, all that is imported is
    Python: while libraries are loaded, others have to wait."""

    def __init__(self, meanwhile: _Meanwhile):
        self._meanwhile = meanwhile

    def find_spec(self, name: str, path: Any, target: Any = None) -> None:
        if name == "huggingface_hub.hf_api":
            sys.meta_path.remove(self)
            self._meanwhile.start()


class _ScanOnce(MetaPathFinder):
    """Waits for the module that looks through the sources, and has it remember what it found in a folder.

    Looking through them takes a while and needs no libraries of others, so that torch's can be loaded meanwhile."""

    def __init__(self) -> None:
        self.meanwhile = _Meanwhile(_load_libraries)

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name != "transformers.utils.import_utils":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def run_and_change(module: Any) -> None:
                with _records_when_asked():
                    run(module)
                scan = module.create_import_structure_from_path
                module.create_import_structure_from_path = self._remembered(scan)
                module.fetch__all__ = _from_its_line(module.fetch__all__)

            spec.loader.exec_module = run_and_change  # type: ignore[method-assign]
        return spec

    def _remembered(self, scan: Callable[[Any], Any]) -> Callable[[Any], Any]:
        found: dict[str, bytes] = {}

        def scanned(path: Any) -> Any:
            self.meanwhile.start()
            folder = os.path.dirname(path) if os.path.isfile(path) else os.fspath(path)
            if folder in found:
                return pickle.loads(found[folder])  # callers change what they get
            names = scan(path)
            found[folder] = pickle.dumps(names)
            return names

        return scanned


@contextmanager
def _records_when_asked() -> Iterator[None]:
    read_all = metadata.packages_distributions
    metadata.packages_distributions = lambda: PackagesByModule(read_all)  # type: ignore[assignment,return-value]
    try:
        yield
    finally:
        metadata.packages_distributions = read_all


def _from_its_line(names_in: Callable[[str], Any]) -> Callable[[str], Any]:
    """The function that reads `__all__` in a source wants the last line that begins so, and what follows."""
    return lambda source: names_in(source[source.rfind("\n__all__") + 1 :])


def _no() -> bool:
    return False


def _unchanged(function: Any = None, *_options: Any, **_more: Any) -> Any:
    return _unchanged if function is None else function


_DECORATORS = dict.fromkeys(("allow_in_graph", "assume_constant_result", "disable"), _unchanged)
