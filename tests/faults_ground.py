"""The ground that faults are tried on: checkpoints, processes that export them, small disks, and what is right."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from faults_compare import NOTE, Found, state_at
from safetensors.torch import load_file, save_file
from tiny_models import tiny

from modelport import _artifact
from modelport.artifacts.staging import Staging
from modelport.cli import main

_TOKENS = {"bos_token_id": 1, "eos_token_id": None, "pad_token_id": 0}
DISK = 400  # kB of the small disk; an artifact takes some 150


def _bert() -> Any:
    return tiny("bert for masked words", vocab_size=300, num_hidden_layers=1)


def _llama() -> Any:
    return tiny("llama", vocab_size=300, num_hidden_layers=1, max_position_embeddings=128, **_TOKENS)


def _t5() -> Any:
    return tiny("t5", vocab_size=300, num_layers=1, **_TOKENS)


@dataclasses.dataclass(frozen=True)
class Target:
    """What is exported: the old and the new checkpoint, the name of OUT, and flags."""

    name: str
    old: str
    new: str
    out: str = "out"
    flags: tuple[str, ...] = ()


TARGETS = (
    Target("folder", "bert-a", "bert-b"),
    Target("file with weights beside", "bert-a", "bert-b", out="place/model.onnx"),
    Target("parts of a generative model", "t5-a", "llama-a"),
    Target("for transformers.js", "llama-a", "llama-b", flags=("--for", "transformers.js")),
    Target("linked weights", "bert-a", "bert-b", flags=("--weights", "link")),
)


class Ground:
    """The checkpoints, and what an undisturbed export of each target gives."""

    def __init__(self, folder: Path, seed: int):
        self.folder, self.random = folder, random.Random(seed)
        self._models = folder / "checkpoints"
        for kind, maker in (("bert", _bert), ("llama", _llama), ("t5", _t5)):
            self._save(kind, maker)
        # Once in this process, so that everything is imported before processes are forked from it.
        for name in ("bert-a", "llama-a"):
            assert main(["export", "onnx", self.model(name), str(folder / "warm" / name), "--no-check", "-q"]) == 0
        self._whole: dict[tuple[str, Target], tuple[Path, Found]] = {}
        self._measured: dict[Target, tuple[float, int]] = {}

    def _save(self, kind: str, maker: Callable[[], Any]) -> None:
        maker().save_pretrained(self._models / f"{kind}-a")
        shutil.copytree(self._models / f"{kind}-a", self._models / f"{kind}-b")
        file = self._models / f"{kind}-b" / "model.safetensors"
        save_file({name: weight + 1 for name, weight in load_file(file).items()}, file, {"format": "pt"})

    def model(self, name: str) -> str:
        return str(self._models / name)

    def command(self, target: Target, model: str, place: Path) -> list[str]:
        return ["export", "onnx", self.model(model), str(place / target.out), "--no-check", "-q", *target.flags]

    def whole(self, target: Target, model: str) -> Found:
        """What an export of this checkpoint gives that nothing disturbs."""
        return self._made(target, model)[1]

    def _made(self, target: Target, model: str) -> tuple[Path, Found]:
        if (model, target) not in self._whole:
            place = Path(tempfile.mkdtemp(dir=self.folder))
            assert self.export(target, model, place).wait() == 0
            self._whole[model, target] = place, state_at(place / target.out)
        return self._whole[model, target]

    def measured(self, target: Target) -> tuple[float, int]:
        """The seconds and the changes to the disk that an export takes which replaces the old one."""
        if target not in self._measured:
            place, said = self.place(target), self.folder / "steps"
            steps: list[int] = []
            command = self.command(target, target.new, place)
            process = Forked(lambda: main(command) or said.write_text(str(len(steps))) * 0,
                             lambda: _artifact.before_step(lambda: steps.append(1)))  # fmt: skip
            assert process.wait() == 0
            self._measured[target] = process.seconds, int(said.read_text())
        return self._measured[target]

    def place(self, target: Target, where: Path | None = None) -> Path:
        """A folder with the old artifact at OUT, beside something of the user's."""
        place = Path(tempfile.mkdtemp(dir=where or self.folder))
        shutil.copytree(self._made(target, target.old)[0], place, dirs_exist_ok=True)
        out = place / target.out
        notes = (out if out.is_dir() else out.parent) / NOTE
        notes.parent.mkdir()
        notes.write_text("mine")
        return place

    def export(self, target: Target, model: str, place: Path, before: Callable[[], None] | None = None) -> Forked:
        command = self.command(target, model, place)
        return Forked(lambda: main(command), before)

    def verdict(self, target: Target, place: Path) -> str:
        """ "old", "new", "neither" for a folder that says so itself, or "MIXED"."""
        found = state_at(place / target.out)
        for name, model in (("old", target.old), ("new", target.new)):
            if found == self.whole(target, model):
                return name
        return "neither" if found.refused else "MIXED"

    def after(self, target: Target, place: Path) -> None:
        """The next export removes what others left, although it fails itself, and the user's file is there."""
        with contextlib.suppress(KeyboardInterrupt), Staging(place / target.out):
            raise KeyboardInterrupt
        assert not list(place.rglob(".*.partial"))
        assert self.verdict(target, place) in ("old", "new")
        assert next(place.rglob(NOTE)).read_text() == "mine"
        shutil.rmtree(place)


class Forked:
    """A process that has everything imported, and does one thing."""

    def __init__(self, work: Callable[[], int], before: Callable[[], None] | None = None):
        self.started = time.perf_counter()
        self.pid = os.fork()
        if self.pid == 0:
            self._child(work, before)

    def _child(self, work: Callable[[], int], before: Callable[[], None] | None) -> None:
        code = 99
        try:
            silent = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(silent, stream)
            if before is not None:
                before()
            code = work()
        finally:
            os._exit(code)

    def wait(self) -> int:
        _, status = os.waitpid(self.pid, 0)
        self.seconds = time.perf_counter() - self.started
        return os.waitstatus_to_exitcode(status)

    def kill_after(self, seconds: float) -> int:
        time.sleep(seconds)
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        return self.wait()


@contextlib.contextmanager
def mounted(folder: Path, size: int, at: Path | None = None) -> Iterator[Path]:
    disk = at or Path(tempfile.mkdtemp(dir=folder))
    disk.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}k", "tmpfs", disk], check=True, capture_output=True)
    try:
        yield disk
    finally:
        subprocess.run(["umount", disk], check=True)


def can_mount(folder: Path) -> bool:
    try:
        with mounted(folder, 64):
            return True
    except (subprocess.CalledProcessError, OSError):
        return False
