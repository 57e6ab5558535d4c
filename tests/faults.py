"""Exports that are killed, meet a full disk, each other or a checkpoint that changes: what is at OUT afterwards?

Each run starts with the whole artifact of one checkpoint at OUT, exports another one into it, and is disturbed. Then
OUT must hold one of the two, byte for byte, beside what the user has there. Processes are forked from one that has
everything imported; some runs are the real command. `make test-faults` prints how many were what; a mixture fails."""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import torch
from faults_compare import state_at
from faults_ground import DISK, TARGETS, Ground, Target, can_mount, mounted

from modelport import _artifact

# --- what can go wrong: each gives the verdict on one run -------------------------------------------------------------


def killed_at_random(ground: Ground, target: Target) -> str:
    place = ground.place(target)
    ground.export(target, target.new, place).kill_after(ground.random.uniform(0, ground.measured(target)[0] * 1.1))
    return _settled(ground, target, place)


def killed_in_commit(ground: Ground, target: Target) -> str:
    """Before a change to the disk that is chosen by its number."""
    place = ground.place(target)
    left = ground.random.randrange(ground.measured(target)[1])
    ground.export(target, target.new, place, lambda: _kill_before_step(left)).wait()
    return _settled(ground, target, place)


def _kill_before_step(number: int) -> None:
    left = [number]

    def step() -> None:
        left[0] -= 1
        if left[0] < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    _artifact.before_step(step)


def file_too_large(ground: Ground, target: Target) -> str:
    """A limit on the size of files, which a write meets as it meets a full disk."""
    place = ground.place(target)
    limit = ground.random.randrange(1, 200_000)

    def limited() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    ground.export(target, target.new, place, limited).wait()
    return _settled(ground, target, place)


def full_disk(ground: Ground, target: Target) -> str:
    with mounted(ground.folder, DISK) as disk:
        place = ground.place(target, disk)
        free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
        (disk / "filler").write_bytes(b"x" * ground.random.randrange(free))
        ground.export(target, target.new, place).wait()
        (disk / "filler").unlink()
        return _settled(ground, target, place)


def read_only(ground: Ground, target: Target) -> str:
    with mounted(ground.folder, 4 * DISK) as disk:
        place = ground.place(target, disk)
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        assert ground.export(target, target.new, place).wait() == 2
        subprocess.run(["mount", "-o", "remount,rw", disk], check=True)
        return _settled(ground, target, place)


def mount_point(ground: Ground, target: Target) -> str:
    """OUT itself is a disk: nothing can be made beside it, and its files are replaced one by one."""
    place = ground.place(target)
    kept = shutil.move(place / target.out, place / "before")
    with mounted(ground.folder, 8 * DISK, place / target.out) as out:
        shutil.copytree(kept, out, dirs_exist_ok=True)
        left = ground.random.randrange(80)
        ground.export(target, target.new, place, lambda: _kill_before_step(left)).wait()
        verdict = ground.verdict(target, place)
        assert ground.export(target, target.new, place).wait() == 0
        assert ground.verdict(target, place) == "new" and not list(out.glob(".*.partial"))
    return verdict


def checkpoint_changes(ground: Ground, target: Target) -> str:
    """Other weights are written over those that are being read: old artifact, or one of the two, but no mixture."""
    place = ground.place(target)
    model = Path(ground.model(target.new))
    file, original = model / "model.safetensors", (model / "model.safetensors").read_bytes()
    dated = file.stat()
    other = (Path(ground.model(target.old)) / "model.safetensors").read_bytes()
    ground.whole(target, target.new)
    delay = ground.random.uniform(0, ground.measured(target)[0])

    def overwrite() -> None:
        time.sleep(delay)
        with open(file, "r+b") as opened:
            opened.write(other)

    writer = threading.Thread(target=overwrite)
    running = ground.export(target, target.new, place)
    writer.start()
    running.wait()
    writer.join()
    verdict = ground.verdict(target, place)
    if verdict == "MIXED":  # all of the other weights, which were there before it began to read
        late = Path(tempfile.mkdtemp(dir=ground.folder))
        assert ground.export(target, target.new, late).wait() == 0
        verdict = "new" if state_at(late / target.out) == state_at(place / target.out) else "MIXED"
    file.write_bytes(original)
    os.utime(file, ns=(dated.st_atime_ns, dated.st_mtime_ns))  # a linked artifact knows it
    shutil.rmtree(place)
    return verdict


def four_at_once(ground: Ground, target: Target) -> str:
    place = ground.place(target)
    models = [target.new, target.old, target.new, target.old]
    running = [ground.export(target, model, place) for model in models]
    assert [process.wait() for process in running] == [0, 0, 0, 0]
    return _settled(ground, target, place)


def command_killed(ground: Ground, target: Target) -> str:
    """The real command, in a process of its own."""
    place = ground.place(target)
    command = [sys.executable, "-m", "modelport", *ground.command(target, target.new, place)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(ground.random.uniform(0.5, 6))
    process.kill()
    process.wait()
    return _settled(ground, target, place)


def _settled(ground: Ground, target: Target, place: Path) -> str:
    verdict = ground.verdict(target, place)
    if verdict != "MIXED":
        ground.after(target, place)
    return verdict


# --- how often -------------------------------------------------------------------------------------------------------

_FOLDERS = tuple(target for target in TARGETS if target.out == "out")
_COPIED = tuple(target for target in TARGETS if "link" not in target.flags)
# The share of the runs, and what they are tried with.
FAULTS: tuple[tuple[Callable[[Ground, Target], str], int, tuple[Target, ...]], ...] = (
    (killed_at_random, 30, TARGETS),
    (killed_in_commit, 30, TARGETS),
    (file_too_large, 8, _COPIED),
    (full_disk, 8, _COPIED),
    (read_only, 2, _COPIED),
    (mount_point, 8, (_FOLDERS[0], _FOLDERS[1])),
    (checkpoint_changes, 6, (TARGETS[0], TARGETS[1])),
    (four_at_once, 8, TARGETS),
)
_NEED_A_DISK = (full_disk, read_only, mount_point)


def run(folder: Path, runs: int, commands: int, seed: int) -> dict[tuple[str, str], Counter[str]]:
    """What was found, by what went wrong and what was exported."""
    torch.set_num_threads(1)
    ground = Ground(folder, seed)
    faults = [row for row in FAULTS if row[0] not in _NEED_A_DISK or can_mount(folder)]
    shares = sum(share for _, share, _ in faults)
    found: dict[tuple[str, str], Counter[str]] = {}
    plan = [(fault, target) for fault, share, targets in faults for target in targets
            for _ in range(-(-runs * share // shares // len(targets)) or 1)]  # fmt: skip
    plan += [(command_killed, TARGETS[i % len(TARGETS)]) for i in range(commands)]
    ground.random.shuffle(plan)
    for fault, target in plan:
        row = found.setdefault((fault.__name__.replace("_", " "), target.name), Counter())
        row[fault(ground, target)] += 1
    return found


def table(found: dict[tuple[str, str], Counter[str]]) -> str:
    columns = ("old", "new", "neither", "MIXED")
    rows = [("what went wrong", "what was exported", *columns)]
    rows += [(*key, *(str(row[name] or "-") for name in columns)) for key, row in sorted(found.items())]
    total = sum(found.values(), Counter())
    rows.append((f"{total.total()} runs", "", *(str(total[name]) for name in columns)))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows)


def _main() -> int:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--runs", type=int, default=300, help="in forked processes")
    asked.add_argument("--commands", type=int, default=24, help="of the real command")
    asked.add_argument("--seed", type=int, default=int(time.time()))
    given = asked.parse_args()
    print(f"seed {given.seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        found = run(Path(folder), given.runs, given.commands, given.seed)
    print(table(found))
    return 1 if sum(found.values(), Counter())["MIXED"] else 0


if __name__ == "__main__":
    sys.exit(_main())
