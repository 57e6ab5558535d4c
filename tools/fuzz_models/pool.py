"""Seeds spread over worker processes; one that dies or hangs is a finding, and is replaced."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

from .trying import SECONDS, Finding


def run_seeds(seeds: Iterable[int], jobs: int, done: Callable[[int, list[Finding]], None]) -> None:
    """Calls `done` with what each seed found, from one thread at a time."""
    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
    for seed in seeds:
        waiting.put(seed)
    lock = threading.Lock()

    def work() -> None:
        worker = _Worker()
        while True:
            try:
                seed = waiting.get_nowait()
            except queue.Empty:
                worker.stop()
                return
            found = worker.answer(seed)
            with lock:
                done(seed, found)

    threads = [threading.Thread(target=work) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class _Worker:
    """A process that takes seeds on its standard input and gives findings on its standard output, a line each."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._answered = 0

    def answer(self, seed: int) -> list[Finding]:
        if self._process is None or self._answered == 250:  # what a process remembers does not grow for ever
            self.stop()
            self._start()
        process = self._process
        assert process is not None and process.stdin is not None and process.stdout is not None
        alarm = threading.Timer(SECONDS + 60, process.kill)
        alarm.start()
        try:
            process.stdin.write(f"{seed}\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except OSError:
            line = ""
        finally:
            alarm.cancel()
        self._answered += 1
        if line:
            return [Finding(**row) for row in json.loads(line)]
        code = process.wait()
        self._process = None
        return [Finding(seed, "capture", "crash", f"the process ended with {code}")]

    def _start(self) -> None:
        path = os.pathsep.join([str(Path(__file__).parent.parent), os.environ.get("PYTHONPATH", "")])
        self._process = subprocess.Popen(
            [sys.executable, "-m", "fuzz_models.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        )
        self._answered = 0

    def stop(self) -> None:
        if self._process is not None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process.wait()
            self._process = None
