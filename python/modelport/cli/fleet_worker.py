"""The process that does the jobs of a fleet, one after the other: a line of JSON in, a line of JSON out."""

from __future__ import annotations

import contextlib
import io
import json
import os
import queue
import sys
import threading
from typing import Any

from ..base.peak_memory import forget_peak, peak_memory
from ..quick_imports import command as quick_imports
from . import INTERNAL, kept_capture, main

PLAIN = {"plain": True}  # to be asked again in a process with nothing left out


def serve() -> None:
    quick_imports.allow()  # this process is there for exports and nothing else
    kept_capture.allow()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no answer
    jobs: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(jobs,), daemon=True).start()
    while True:
        answer = perform(json.loads(jobs.get()))
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def _listen(jobs: queue.SimpleQueue[str]) -> None:
    for line in sys.stdin:
        jobs.put(line)
    os._exit(0)  # nobody is there any more who would want what is being done


def perform(request: dict[str, Any]) -> dict[str, Any]:
    """Runs the export command for a request, in this process."""
    remote = "--trust-remote-code" in request["flags"]  # which may use whatever it likes
    if remote and quick_imports.is_quick():
        return PLAIN
    forget_peak()
    argv = ["export", request["format"], request["model"], request["out"], *request["flags"], "--json"]
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said):
            code = main(argv)
    except SystemExit as left:  # argparse, which said why
        code = left.code if isinstance(left.code, int) else 2
    shared = kept_capture.settle()
    if code == INTERNAL and quick_imports.is_quick():
        return PLAIN
    try:
        found = json.loads(said.getvalue())
    except ValueError:
        found = {}
    errors = [] if code == 0 else found.get("errors") or [{"code": "", "what": f"the export ended with {code}"}]
    if code == 0:
        return {"ok": True, "result": _kept(found) | {"shared": shared, "memory": peak_memory()}}
    return {"ok": False, "errors": errors}


def _kept(found: dict[str, Any]) -> dict[str, Any]:
    """What a row of thousands has room for."""
    check = found.get("check")
    return {
        "seconds": found.get("seconds"),
        "nodes": found.get("nodes"),
        "limits": found.get("limits"),
        "notes": found.get("notes"),
        "checked": None if check is None else check["ok"],
    }


if __name__ == "__main__":
    serve()
