"""Weights in huge pages, for a file that is called again and again.

A step of a decoder reads every weight once. In pages of 4 KiB these are so many that the processor looks up nearly
each of them in tables in memory, which takes some percent of a step. onnxruntime packs weights into memory of malloc,
and cannot be told to ask for another kind; but Linux puts pages together that are in use. That takes as long as some
hundred steps gain by it: it is done after as many, a little with each call, so that no token is late."""

from __future__ import annotations

import ctypes
import functools
import mmap
import re
import sys
import threading
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

AFTER_CALLS = 512
_AT_ONCE = 8 << 20  # bytes: some milliseconds
_LARGEST_PAGE = 2 << 20  # where small pages have 64 KiB, huge ones have 512 MiB
_MADV_COLLAPSE = 25  # since Linux 6.1; others refuse it
_SETTINGS = Path("/sys/kernel/mm/transparent_hugepage")
# Private memory that can be written to and lies in no file; malloc's first piece has a name.
_MEMORY = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) rw-p 00000000 00:00 0 *(?:\[heap\])?$", re.MULTILINE)
_IS_THERE, _IS_OURS_ALONE = 1 << 63, 1 << 56  # what the kernel tells of a page


class Piece(NamedTuple):
    """Of the memory of this process."""

    start: int
    end: int


def private_memory() -> list[Piece]:
    """In the order of addresses, without what is too small for a huge page; none where there are no such pages."""
    least = page_size()
    if not least:
        return []
    try:
        told = Path("/proc/self/maps").read_text()
    except OSError:
        return []
    pieces = [Piece(int(start, 16), int(end, 16)) for start, end in _MEMORY.findall(told)]
    return [piece for piece in pieces if piece.end - piece.start >= least]


def memory_since(before: Sequence[Piece]) -> list[Piece]:
    """What there is besides the memory of `before`."""
    ends, found = [piece.end for piece in before], []
    for start, end in private_memory():
        for known in range(bisect_right(ends, start), len(before)):
            if before[known].start >= end:
                break
            if before[known].start > start:
                found.append(Piece(start, before[known].start))
            start = before[known].end
        if start < end:
            found.append(Piece(start, end))
    return found


class HugePages:
    """For one file and the memory that came with it. `called` is said after each call of it, from any thread."""

    def __init__(self, memory: Sequence[Piece], after_calls: int = AFTER_CALLS):
        self._calls_left = after_calls
        self._work = _put_together(memory)
        self._one_at_a_time = threading.Lock()

    def called(self) -> None:
        if self._calls_left > 0:
            self._calls_left -= 1
        elif self._calls_left == 0 and self._one_at_a_time.acquire(blocking=False):
            try:
                if next(self._work, self) is self:  # nothing is left to do
                    self._calls_left = -1
            finally:
                self._one_at_a_time.release()


def _put_together(memory: Sequence[Piece]) -> Iterator[None]:
    huge = page_size()
    if not huge:
        return
    try:
        with Path("/proc/self/pagemap").open("rb", buffering=0) as pages:
            for start, end in memory:
                first, last = -(-start // huge) * huge, end // huge * huge
                for place in range(first, last, _AT_ONCE):
                    size = min(_AT_ONCE, last - place)
                    if _is_in_use(pages, place, size):
                        _libc().madvise(place, size, _MADV_COLLAPSE)  # where it fails, all is as before
                        yield
    except OSError:  # some containers have no such file
        return


def page_size() -> int:
    """Of a huge page; 0 where there are none, or nobody is to have them."""
    if sys.platform != "linux":
        return 0
    try:
        allowed = "[never]" not in (_SETTINGS / "enabled").read_text()
        size = int((_SETTINGS / "hpage_pmd_size").read_text())
    except (OSError, ValueError):
        return 0
    return size if allowed and size <= _LARGEST_PAGE else 0


def _is_in_use(pages: BinaryIO, place: int, size: int) -> bool:
    """All of it, and by nobody else: what was never written to takes no memory, and what a process has in common with
    one that it started takes it once."""
    import numpy as np

    pages.seek(place // mmap.PAGESIZE * 8)
    told = np.frombuffer(pages.read(size // mmap.PAGESIZE * 8), np.uint64)
    wanted = np.uint64(_IS_THERE | _IS_OURS_ALONE)
    return len(told) == size // mmap.PAGESIZE and bool(((told & wanted) == wanted).all())


@functools.cache
def _libc() -> Any:
    libc = ctypes.CDLL(None)
    libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return libc
