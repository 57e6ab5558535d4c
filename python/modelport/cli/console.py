"""What the command line prints: results on stdout, everything else on stderr, progress only where people watch."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ..base.errors import ExportError
from ..base.peak_memory import forget_peak, peak_memory
from ..base.printable import printable
from .progress import Progress


class Unsaid(Exception):
    """What the command was called for could not be printed, as on a full disk."""


def say(text: str, end: str = "\n") -> None:
    """To stdout, now: what stays in a buffer until the process ends may never arrive, and nobody would hear of it."""
    try:
        print(text, end=end, flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise Unsaid(error.strerror or str(error)) from error


class Console:
    def __init__(self, *, quiet: bool, as_json: bool):
        self.quiet, self.as_json = quiet, as_json
        self.seconds: dict[str, float] = {}
        self.memory: dict[str, int] = {}  # the most that each stage used, in bytes
        self.notes: list[str] = []
        self._progress = Progress(shown=not quiet)

    def result(self, text: str, data: dict[str, Any]) -> None:
        """What the command was called for; JSON is printed even when quiet."""
        if self.as_json:
            say(json.dumps(data, indent=2))
        elif not self.quiet:
            say(printable(text))

    def note(self, text: str) -> None:
        self.notes.append(text)
        if not self.quiet:
            self.line(f"note: {printable(text)}")

    def line(self, text: str) -> None:
        """On stderr, above the step that is shown."""
        self._progress.print(text)

    def error(self, text: str) -> None:
        print(f"error: {printable(text)}", file=sys.stderr)

    def failure(self, error: ExportError) -> None:
        print(error, file=sys.stderr)
        if self.as_json:
            with suppress(BrokenPipeError, Unsaid):  # the exit code tells, too
                say(json.dumps({"ok": False, "errors": error.diagnostics}, indent=2))

    @contextmanager
    def stage(
        self, name: str, done: Callable[[], int] | None = None, total: int = 0, *, unit: str = "bytes"
    ) -> Iterator[None]:
        """Times a part of the work; where it takes longer than a second, a terminal shows how far it is."""
        before = [f"{step} {seconds:.1f} s" for step, seconds in self.seconds.items() if seconds >= 0.05]
        with self.timed(name), self._progress.step(" · ".join([*before, name]), done, total, unit):
            yield

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """The same where something else shows how far it is."""
        started = time.perf_counter()
        forget_peak()
        yield
        if (peak := peak_memory()) is not None:
            self.memory[name] = max(self.memory.get(name, 0), peak)
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - started

    def steps(self) -> dict[str, Any]:
        """Time and memory of the stages, as JSON shows them."""
        seconds = {name: round(taken, 4) for name, taken in self.seconds.items()}
        return {"seconds": seconds, "memory": self.memory}

    def timings(self) -> str:
        return ", ".join(f"{name} {seconds:.2f} s" for name, seconds in self.seconds.items())


def note_code(console: Console, folder: Path) -> None:
    """Names the code in a checkpoint that is going to run."""
    from ..weights.remote_code import code_files

    files = code_files(folder)
    if files:
        console.note(f"Python code of {folder} runs, as --trust-remote-code says: {', '.join(files)}")
