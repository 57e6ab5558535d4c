"""A process that does jobs one after the other, with torch and transformers imported once.

It takes a line of JSON for each job and gives one back. One that ends or does not answer in time costs its job, and a
new process takes the next."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from typing import Any

MODULE = "modelport.cli.fleet_worker"
_MOST_JOBS = 600  # what a process remembers of its models does not grow for ever: 0.5 MB each
_PLAIN = {"MODELPORT_PLAIN_IMPORTS": "1"}  # docs/quick-imports.md
_TAIL = 2000  # characters of what it said


class Worker:
    def __init__(self, module: str = MODULE):
        self._module = module
        self._plain = False  # once a job asked for it, imports are plain ones
        self._process: subprocess.Popen[bytes] | None = None
        self._jobs = 0
        self._said: Any = None

    def run(self, request: dict[str, Any], timeout: float) -> dict[str, Any]:
        """The answer of the process; where there is none, {"ok": False, "died": why, "said": ...}."""
        answer = self._ask(request, timeout)
        if "plain" in answer:
            self.stop()
            self._plain = True
            answer = self._ask(request, timeout)
        return answer

    def _ask(self, request: dict[str, Any], timeout: float) -> dict[str, Any]:
        if self._process is None or self._jobs >= _MOST_JOBS or self._process.poll() is not None:
            self.stop()
            self._start()
        process = self._process
        assert process is not None and process.stdin is not None
        self._jobs += 1
        self._said.seek(0)
        self._said.truncate()
        try:
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
            line = self._line(process, time.monotonic() + timeout)
        except OSError:
            line = b""
        if line.endswith(b"\n"):
            return json.loads(line)
        hung = line == b"late"
        if not hung:  # it closed its end: how it ends is known in a moment
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5)
        self._kill()
        why = f"it took longer than {timeout:g} s" if hung else _ending(process.returncode)
        by_system = not hung and process.returncode == -signal.SIGKILL
        return {"ok": False, "died": why, "killed": by_system, "said": self.said()}

    def said(self) -> str:
        """The end of what the process wrote to stderr during the last job."""
        self._said.seek(0)
        return self._said.read().decode(errors="replace")[-_TAIL:]

    def stop(self) -> None:
        if self._process is not None:
            self._kill()
        if self._said is not None:
            self._said.close()
            self._said = None

    def _start(self) -> None:
        self._said = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115, it lives as long as the process
        self._process = subprocess.Popen(
            [sys.executable, "-m", self._module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            start_new_session=True,  # what it starts ends with it
            env={"OMP_NUM_THREADS": "1"} | os.environ | (_PLAIN if self._plain else {}),
        )
        self._jobs = 0

    def _line(self, process: subprocess.Popen[bytes], end: float) -> bytes:
        """What it answers, with its line end; b"late" after the time, something else where it ended."""
        assert process.stdout is not None
        read = b""
        while not read.endswith(b"\n"):
            ready, _, _ = select.select([process.stdout], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                return b"late"
            piece = os.read(process.stdout.fileno(), 1 << 16)
            if not piece:
                break
            read += piece
        return read

    def _kill(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(OSError):  # also what it started and left behind
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for pipe in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):
                assert pipe is not None
                pipe.close()


def _ending(code: int | None) -> str:
    if code is not None and code < 0:
        return f"its process was ended by {signal.Signals(-code).name}"
    return f"its process ended with {code}"
