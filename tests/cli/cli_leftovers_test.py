"""Exports that fail halfway: what was there before is still there, and nothing else."""

from __future__ import annotations

import functools
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tiny_checkpoints
import torch
from cli_test import call, refused, tree


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tiny_checkpoints.save("bert", tmp_path_factory.mktemp("checkpoints")))


@pytest.fixture
def old_export(bert: str, tmp_path: Path) -> tuple[Path, dict[str, bytes]]:
    out = tmp_path / "place" / "out"
    assert call("export", "onnx", bert, out, "--no-check", "-q", "--no-dynamic-axes") == 0
    return out, tree(out.parent)


@pytest.fixture
def small_files() -> Iterator[None]:
    """A limit on the size of a file stands in for a full disk: the write fails in the same place."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_leaves_the_old_export(bert: str, old_export: Any, small_files: None, capsys: Any) -> None:
    out, before = old_export
    assert "cannot write" in refused(capsys, "export", "onnx", bert, out, "--no-check")
    assert "cannot write" in refused(capsys, "export", "onnx", bert, out.parent / "new.onnx", "--no-check")
    assert tree(out.parent) == before


def test_a_full_file_system_leaves_nothing(bert: str, tmp_path: Path, capsys: Any) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=100k", "tmpfs", disk], capture_output=True).returncode:
        pytest.skip("no right to mount")
    try:
        message = refused(capsys, "export", "onnx", bert, disk / "out", "--no-check")
        assert "No space left" in message and "free some disk space" in message
        assert list(disk.iterdir()) == []
    finally:
        subprocess.run(["umount", disk], check=True)


def test_values_that_differ_leave_the_old_export(bert: str, old_export: Any, monkeypatch: Any, capsys: Any) -> None:
    from modelport.cli import loading

    load = loading.model_with_values

    def other(*args: Any) -> Any:
        model = load(*args)
        with torch.no_grad():
            model.bert.encoder.layer[1].output.dense.bias[0] += 3
        return model

    monkeypatch.setattr(loading, "model_with_values", other)
    out, before = old_export
    message = refused(capsys, "export", "onnx", bert, out)
    assert "E0401" in message and "bert.encoder.layer.1.output" in message
    assert tree(out.parent) == before
    assert call("export", "onnx", bert, out, "--atol", "10", "-q") == 0


def test_weights_that_cannot_be_linked_are_refused(bert: str, old_export: Any, monkeypatch: Any, capsys: Any) -> None:
    import errno
    import os

    def other_disk(*_: Any) -> None:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    out, before = old_export
    monkeypatch.setattr(os, "link", other_disk)
    assert "--weights copy" in refused(capsys, "export", "onnx", bert, out, "--weights", "link")
    assert tree(out.parent) == before


RUN = """
import ctypes, os, signal, sys
from modelport.quick_imports import command
command.allow()  # as the command itself starts
command.import_quickly()
from modelport.exporters.onnx_program import OnnxProgram
from modelport.cli import main

write = OnnxProgram.write

def slow(self, path, **changes):
    write(self, path, **changes)
    print("written", flush=True)
    if sys.argv[1] == "stuck":  # as in C++ that does not come back: the call goes on after a signal
        signal.siginterrupt(signal.SIGINT, False)
        ctypes.CDLL(None).read(os.pipe()[0], ctypes.create_string_buffer(1), 1)
    import time
    time.sleep(60)

OnnxProgram.write = slow
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.parametrize(
    ("kind", "sent", "code"),
    [
        ("in_python", signal.SIGINT, 130),
        ("stuck", signal.SIGINT, 130),
        ("in_python", signal.SIGKILL, -signal.SIGKILL),
    ],
)
def test_an_interrupted_export_leaves_the_old_one(kind: str, sent: int, code: int, bert: str, old_export: Any) -> None:
    out, before = old_export
    command = [sys.executable, "-c", RUN, kind, "export", "onnx", bert, str(out), "--no-check"]
    # Where these tests run in the background of a shell, ctrl-C is ignored, and children inherit that.
    as_on_a_terminal = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=as_on_a_terminal
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "written\n"
    assert len(list(out.parent.iterdir())) == 2  # the new one is there, beside the old one
    process.send_signal(sent)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == code, errors
    if sent == signal.SIGINT:
        assert "interrupted" in errors and "Traceback" not in errors
    if sent == signal.SIGKILL:  # nobody is left to remove what it wrote: the next export into the place does
        assert tree(out) == {
            name.removeprefix("out/"): data for name, data in before.items() if name.startswith("out/")
        }
        assert call("export", "onnx", bert, out, "--no-check", "-q", "--no-dynamic-axes") == 0
    assert tree(out.parent) == before
