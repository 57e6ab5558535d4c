"""`modelport fleet`: many models, a row for each, and a page of all."""

from __future__ import annotations

import contextlib
import json
import shlex
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TextIO

from ..base.errors import problem
from ..base.printable import one_line
from ..fleet.cache import Cache
from ..fleet.jobs import FORMATS, Job, read_jobs
from ..fleet.local_place import LocalPlace
from ..fleet.memory import available
from ..fleet.performing import Settings
from ..fleet.scheduling import Place, Schedule
from ..fleet.summary import Summary, write_summary
from .console import Console

ROWS, PAGE = "fleet.jsonl", "index.html"


def run(args: Any, console: Console) -> bool:
    formats = [form for form in FORMATS if form in (args.format or ["onnx"])]
    unchecked = ["--no-check"] if args.no_check else []
    flags = {form: [*shlex.split(getattr(args, form)), *unchecked] for form in FORMATS}
    jobs = read_jobs(Path(args.models), formats, flags)
    out = Path(args.out).absolute()
    if out.exists() and not out.is_dir():
        raise problem("E0105", f"{out} is a file; the output is a folder", "name another folder")
    out.mkdir(parents=True, exist_ok=True)
    cache = Path(args.cache).absolute() if args.cache else out / ".cache"
    settings = Settings(str(out), str(cache), float(args.timeout), args.again)
    Cache(cache).sweep()
    summary = Summary(len(jobs), str(out))
    with (
        (out / ROWS).open("w", encoding="utf-8") as rows,
        console.stage("fleet", lambda: summary.done, len(jobs), unit="exports"),
    ):
        _work(args, jobs, settings, _taker(console, summary, rows))
    write_summary(summary, out / PAGE)
    console.result(summary.text(out / PAGE), summary.to_dict())
    return summary.ok


def _work(args: Any, jobs: list[Job], settings: Settings, done: Callable[[dict[str, Any]], None]) -> None:
    schedule = Schedule(jobs, done)
    with contextlib.ExitStack() as stack:
        stack.callback(schedule.stop)
        new: Callable[[], Iterable[Place]]
        if args.ray is None:
            here = LocalPlace(min(args.jobs, len(jobs)), args.memory or available(), settings)
            stack.callback(here.close)
            schedule.add(here)
            new = tuple
        else:
            from ..fleet.ray_places import RayPlaces

            cluster = RayPlaces(args.ray, settings, args.memory)
            stack.callback(cluster.close)
            new = cluster.new
        schedule.wait(new)
        for job in schedule.unfinished():
            lost = {"code": "", "what": "no machine is left to do it"}
            done({**job.to_dict(), "ok": False, "error": lost, "seconds": 0.0, "at": time.time()})


def _taker(console: Console, summary: Summary, rows: TextIO) -> Callable[[dict[str, Any]], None]:
    def take(row: dict[str, Any]) -> None:
        summary.add(row)
        rows.write(json.dumps(row) + "\n")
        rows.flush()
        if not console.quiet:
            state = "kept from before" if row.get("cached") and row["ok"] else "ok" if row["ok"] else _why(row)
            at = f"[{summary.done}/{summary.total}]"
            console.line(one_line(f"{at} {row['name']} {row['format']}: {state}, {row['seconds']:.2f} s"))

    return take


def _why(row: dict[str, Any]) -> str:
    code, what = row["error"]["code"], row["error"]["what"]
    return f"{code} {what}".strip()
