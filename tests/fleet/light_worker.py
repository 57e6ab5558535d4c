"""A worker without torch, for tests of what is around it: what it does is in the flags of the job."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path


def perform(request: dict) -> dict:
    for flag in request["flags"]:
        what, _, value = flag.partition("=")
        if what == "sleep":
            time.sleep(float(value))
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
    for line in sys.stdin:
        print(json.dumps(perform(json.loads(line))), flush=True)
