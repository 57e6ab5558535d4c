"""Weights of a file that is called often come to lie in huge pages, where the system has them; nothing else changes."""

from __future__ import annotations

import mmap
import platform
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from own_memory import OwnMemory
from tiny_decoders import exported, made, padded

import modelport
from modelport.runtimes import huge_pages
from modelport.runtimes.huge_pages import HugePages, Piece

TESTS = Path(__file__).resolve().parent.parent
SIZE = 32 << 20


def _can_put_together() -> bool:
    version = re.match(r"(\d+)\.(\d+)", platform.release())
    return bool(huge_pages.page_size()) and version is not None and (int(version[1]), int(version[2])) >= (6, 1)


needs_huge_pages = pytest.mark.skipif(not _can_put_together(), reason="the system has no huge pages on demand")


def _call_until_all_is_done(pages: HugePages) -> None:
    for _ in range(10_000):
        pages.called()
        if pages._calls_left < 0:
            return
    raise AssertionError("it never ends")


@needs_huge_pages
def test_memory_in_use_is_put_together_after_so_many_calls_and_keeps_its_values():
    memory = OwnMemory(SIZE)
    memory.bytes[:] = np.arange(SIZE) % 251
    pages = HugePages([memory.piece], after_calls=3)
    for _ in range(3):
        pages.called()
    assert memory.told("AnonHugePages") == 0
    _call_until_all_is_done(pages)
    assert memory.told("AnonHugePages") >= SIZE - (4 << 20)  # its ends may lie between two huge pages
    assert np.array_equal(memory.bytes, np.arange(SIZE) % 251)


@needs_huge_pages
def test_memory_that_nobody_wrote_to_still_takes_none():
    memory = OwnMemory(SIZE)
    memory.bytes[: SIZE // 2 : mmap.PAGESIZE] = 1
    _call_until_all_is_done(HugePages([memory.piece], after_calls=0))
    assert memory.told("Rss") == SIZE // 2


@needs_huge_pages
def test_memory_that_came_with_a_file_is_told_from_what_was_there():
    earlier = OwnMemory(SIZE)
    before = huge_pages.private_memory()
    memory = OwnMemory(SIZE)
    found = huge_pages.memory_since(before)
    assert memory.piece in found and earlier.piece in before and earlier.piece not in found


def test_of_memory_that_grew_the_new_ends_are_found(monkeypatch):
    monkeypatch.setattr(huge_pages, "private_memory", lambda: [Piece(0, 10), Piece(20, 50), Piece(60, 70)])
    before = [Piece(2, 4), Piece(6, 10), Piece(20, 50), Piece(52, 58)]
    assert huge_pages.memory_since(before) == [Piece(0, 2), Piece(4, 6), Piece(60, 70)]


# In a process of its own: one with threads had better not be copied.
_WITH_ANOTHER_PROCESS = """
import os, signal
from own_memory import OwnMemory
from modelport.runtimes.huge_pages import HugePages

def put_together():
    pages = HugePages([memory.piece], after_calls=0)
    while pages._calls_left == 0:
        pages.called()
    return memory.told("AnonHugePages")

memory = OwnMemory(SIZE)
memory.bytes[:] = 1
if not (other := os.fork()):
    signal.pause()
try:
    shared = put_together()
finally:
    os.kill(other, signal.SIGKILL)
    os.waitpid(other, 0)
print(shared, put_together())
"""


@needs_huge_pages
def test_memory_that_another_process_reads_too_is_not_copied():
    script = _WITH_ANOTHER_PROCESS.replace("SIZE", str(SIZE))
    done = subprocess.run([sys.executable, "-c", script], cwd=TESTS, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    shared, alone = map(int, done.stdout.split())
    assert shared == 0 and alone >= SIZE - (4 << 20)


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ({"enabled": "always [madvise] never", "hpage_pmd_size": "2097152\n"}, 2 << 20),
        ({"enabled": "always madvise [never]", "hpage_pmd_size": "2097152\n"}, 0),
        ({"enabled": "[always] madvise never", "hpage_pmd_size": "536870912\n"}, 0),
        ({"enabled": "[always] madvise never"}, 0),
        ({}, 0),
    ],
    ids=["asked for", "never", "too large", "without a size", "a system without them"],
)
def test_what_the_system_allows_is_kept_to(monkeypatch, tmp_path, settings, found):
    for name, text in settings.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(huge_pages, "_SETTINGS", tmp_path)
    monkeypatch.setattr(sys, "platform", "linux")
    assert huge_pages.page_size() == found
    if not found:  # there is nothing to do
        assert huge_pages.private_memory() == []


def test_a_text_is_the_same_while_memory_is_put_together(monkeypatch, tmp_path):
    model = made("qwen3")
    exported(model).save(tmp_path)
    all_memory = huge_pages.private_memory()  # the weights of a small model are too small
    monkeypatch.setattr("modelport.runtimes.onnx_file.HugePages", lambda _: HugePages(all_memory, after_calls=4))
    ours, prompt = modelport.load(tmp_path), padded(5)
    settings = {"max_new_tokens": 24, "min_new_tokens": 24, "do_sample": False}
    assert torch.equal(ours.generate(**prompt, **settings), model.generate(**prompt, **settings))
