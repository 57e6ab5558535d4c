"""Weights in huge pages from the first step on, for a file that is loaded in the main thread.

onnxruntime arranges weights in memory of malloc, which comes in small pages: their addresses alone cost some percent of
each step. glibc takes what the main thread asks for from one heap, whose end can be marked for huge pages before
anybody has written to it. That costs nothing: pages are asked for once for each 2 MiB instead of 512 times. Memory of
other threads lies elsewhere; `huge_pages` moves it after some hundred calls."""

from __future__ import annotations

import ctypes
import functools
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .huge_pages import page_size

_LEAST = 64 << 20  # bytes: of less a step reads little
_ROOM = 1.1  # weights are a bit larger when they are arranged
_MADV_HUGEPAGE = 14
# Settings of glibc's malloc, by its numbers.
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _MMAP_MAX = -1, -3, -4
# What it does by default in a process that has freed large pieces: smaller ones than 32 MiB come from the heap.
_BY_DEFAULT = {_MMAP_MAX: 65536, _MMAP_THRESHOLD: 32 << 20, _TRIM_THRESHOLD: 64 << 20}

_one_at_a_time = threading.Lock()


@contextmanager
def huge_heap(size: int) -> Iterator[Callable[[Any], None]]:
    """So many bytes of weights are about to be arranged. Whoever has them is to be said: with it their memory goes."""
    libc = _glibc() if size >= _LEAST and page_size() and in_main_thread() else None
    if libc is None:
        yield lambda _owner: None
        return
    with _one_at_a_time:
        libc.mallopt(_MMAP_MAX, 0)  # all comes from the heap,
        libc.mallopt(_TRIM_THRESHOLD, -1)  # whose end stays
        try:
            _mark_end(libc, int(size * _ROOM))
            yield lambda owner: weakref.finalize(owner, libc.malloc_trim, 0)
        finally:
            for setting, value in _BY_DEFAULT.items():
                libc.mallopt(setting, value)


def in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _mark_end(libc: Any, size: int) -> None:
    start = libc.malloc(size)
    if start:  # else there is not as much, and loading says so where it really is too little
        page = page_size()
        first, last = -(-start // page) * page, (start + size) // page * page
        libc.madvise(first, max(0, last - first), _MADV_HUGEPAGE)
        libc.free(start)


@functools.cache
def _glibc() -> Any:
    """Nothing where malloc is another's."""
    libc = ctypes.CDLL(None)
    if not all(hasattr(libc, name) for name in ("gnu_get_libc_version", "mallopt", "malloc_trim", "madvise")):
        return None
    libc.malloc.argtypes, libc.malloc.restype = [ctypes.c_size_t], ctypes.c_void_p
    libc.free.argtypes = [ctypes.c_void_p]
    libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return libc
