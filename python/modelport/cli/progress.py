"""How far a command is, on a terminal: a line for the step that is running once it has taken a second."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_PATIENCE = 1.0  # seconds without a word
_PAUSE = 0.2  # between two looks at how far it is


class Progress:
    """Lines on stderr, and below them the step that is running. `rich` is imported for the first line that is shown:
    a command that is quick, or that nobody watches, never imports it."""

    def __init__(self, *, shown: bool):
        self._shown = shown and sys.stderr.isatty()
        self._line: Any = None
        self._turn = threading.Lock()  # lines come from other threads than the step

    def print(self, text: str) -> None:
        with self._turn:
            if self._line is None:
                print(text, file=sys.stderr)
            else:
                self._line.console.print(text, markup=False, highlight=False, soft_wrap=True)

    @contextmanager
    def step(self, title: str, done: Callable[[], int] | None, total: int, unit: str) -> Iterator[None]:
        """`done` says how many of `total` there are; without it, only the time is shown."""
        if not self._shown or self._line is not None:
            yield
            return
        over = threading.Event()
        started = time.monotonic()

        def watch() -> None:
            if over.wait(_PATIENCE):
                return
            so_far = (lambda: min(done(), total)) if done is not None else (lambda: 0)
            line = _line(counted=done is not None, unit=unit)
            line.add_task(title, total=total or None, completed=so_far())
            [task] = line.tasks
            task.start_time = started
            with self._turn:
                line.start()
                self._line = line
            while not over.wait(_PAUSE):
                line.update(task.id, completed=so_far(), refresh=True)
            with self._turn:
                line.stop()
                self._line = None

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            over.set()
            watcher.join()


def _line(*, counted: bool, unit: str) -> Any:
    from rich import progress
    from rich.console import Console

    class Terminal(Console):
        def show_cursor(self, show: bool = True) -> bool:
            """A process that is killed could not bring it back."""
            return False

    columns: list[Any] = [progress.TextColumn("{task.description}")]
    if counted:
        amount = progress.DownloadColumn() if unit == "bytes" else progress.TextColumn("{task.completed}/{task.total}")
        columns += [progress.BarColumn(), amount, progress.TimeElapsedColumn()]
        columns += [progress.TextColumn("left"), progress.TimeRemainingColumn(compact=True)]
    else:
        columns += [progress.SpinnerColumn("line"), progress.TimeElapsedColumn()]
    return progress.Progress(
        *columns,
        console=Terminal(stderr=True),
        auto_refresh=False,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
