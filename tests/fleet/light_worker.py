"""A worker without torch, for tests of what is around it: what it does is in the flags of the job."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path


def wait_at(gate: Path) -> None:
    (gate / f"waits-{os.getpid()}").touch()
    while not (gate / "open").exists():
        time.sleep(0.02)


def perform(request: dict, is_first: bool) -> dict:
    for flag in request["flags"]:
        what, _, value = flag.partition("=")
        if what == "sleep":
            time.sleep(float(value))
        elif what == "gate" and not is_first:
            wait_at(Path(value))
        elif what == "crash":
            print("about to crash", file=sys.stderr, flush=True)
            os.kill(os.getpid(), signal.Signals[value])
        elif what == "once" and not Path(value).exists():  # only the first time
            Path(value).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        elif what == "refuse":
            return {"ok": False, "errors": [{"code": value, "what": "no rule for it"}]}
    out = Path(request["out"])
    out.mkdir()
    (out / "model.onnx").write_text(f"made of {request['model']}")
    with open(Path(request["model"]).parent / "done.txt", "a") as log:  # how often work was done
        log.write(f"{request['model']} {os.getpid()}\n")
    return {"ok": True, "result": {"memory": 1, "process": os.getpid()}}


if __name__ == "__main__":
    for count, line in enumerate(sys.stdin):
        print(json.dumps(perform(json.loads(line), is_first=count == 0)), flush=True)
