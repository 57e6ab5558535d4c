"""One job from its checkpoint to its place in OUT: by the cache if it can, else by a worker."""

from __future__ import annotations

import dataclasses
import os
import shutil
import time
from pathlib import Path
from typing import Any

from ..base.errors import ExportError, problem
from ..hub.folder import checkpoint_folder
from ..hub.name import hub_name
from .cache import Cache
from .jobs import Job
from .worker import MODULE, Worker

# Refusals that the same model will meet again: its code, its data, its values. Others may be of the machine.
_OF_THE_MODEL = ("E02", "E0104", "E0309", "E0310", "E0311", "E0401")


@dataclasses.dataclass(frozen=True)
class Settings:
    """What all jobs share; it goes to other machines as it is."""

    out: str
    cache: str
    timeout: float
    again: bool = False  # refusals that are kept are tried again
    module: str = MODULE  # what a worker runs


def perform(job: Job, settings: Settings, worker: Worker) -> dict[str, Any]:
    """The row of a job. Whatever happens to it happens to it alone."""
    started = time.perf_counter()
    row: dict[str, Any] = {"name": job.name, "model": job.model, "format": job.format, "flags": list(job.flags)}
    try:
        row |= _result(job, settings, worker)
    except ExportError as error:
        row |= _failed(error.code, error.diagnostics[0]["what"] if error.diagnostics else str(error))
    except OSError as error:
        row |= _failed("E0103", f"{error.filename or job.model}: {error.strerror or error}")
    return row | {"seconds": round(time.perf_counter() - started, 4), "at": round(time.time(), 3)}


def _result(job: Job, settings: Settings, worker: Worker) -> dict[str, Any]:
    cache = Cache(Path(settings.cache))
    key = cache.key(job, _folder(job))
    found = cache.find(key)
    if found is not None and not (settings.again and not found["ok"]):
        cached = True
    else:
        cached, found = False, _made(job, settings, worker, cache, key)
    row = {"key": key, "cached": cached, **found}
    if found["ok"]:
        target = Path(settings.out) / job.name / job.format
        target.parent.mkdir(parents=True, exist_ok=True)
        cache.link(key, target)
        row["out"] = os.fspath(target)
    return row


def _folder(job: Job) -> Path:
    """Of a name of the hub what is in it is fetched, here, where it is exported."""
    if hub_name(job.model) is None and not Path(job.model).is_dir():
        raise problem("E0103", f"{job.model}: no such folder", "name a checkpoint folder, or a name on the hub")
    asked = dict(zip(job.flags, job.flags[1:], strict=False)).get("--revision")
    return checkpoint_folder(job.model, revision=asked, code="--trust-remote-code" in job.flags)


def _made(job: Job, settings: Settings, worker: Worker, cache: Cache, key: str) -> dict[str, Any]:
    made = cache.begin()
    try:
        request = {"format": job.format, "model": job.model, "flags": list(job.flags), "out": str(made / "artifact")}
        answer = worker.run(request, settings.timeout)
        if "died" in answer:
            return _failed("", answer["died"]) | {"said": answer["said"], "killed": answer["killed"]}
        if not answer["ok"]:
            first = (answer.get("errors") or [{}])[0]
            row = _failed(first.get("code", ""), first.get("what") or answer.get("said", "")[-400:])
            if not str(first.get("code", "none")).startswith(_OF_THE_MODEL):
                return row
            shutil.rmtree(made / "artifact", ignore_errors=True)
        else:
            row = {"ok": True, "result": answer["result"], "bytes": _size(made / "artifact")}
        if cache.entry(key).exists():
            shutil.rmtree(cache.entry(key), ignore_errors=True)
        cache.keep(key, made, row)
        return row
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _failed(code: str, what: str) -> dict[str, Any]:
    return {"ok": False, "error": {"code": code, "what": what}}


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
