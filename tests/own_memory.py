"""Memory with what the kernel says of it."""

from __future__ import annotations

import mmap
import re
from pathlib import Path

import numpy as np


class OwnMemory:
    """`size` bytes that nobody wrote to, in a piece of the process's memory that is theirs alone."""

    def __init__(self, size: int):
        memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        memory.madvise(mmap.MADV_DONTDUMP)  # pieces that differ in this are never made one
        self.bytes = np.frombuffer(memory, np.uint8)

    @property
    def piece(self) -> tuple[int, int]:
        return self.bytes.ctypes.data, self.bytes.ctypes.data + len(self.bytes)

    def told(self, what: str) -> int:
        """One of the rows of smaps, in bytes."""
        piece = Path("/proc/self/smaps").read_text().split(f"\n{self.bytes.ctypes.data:x}-", 1)[1]
        found = re.search(rf"^{what}: +(\d+) kB", piece, re.MULTILINE)
        assert found is not None
        return int(found[1]) << 10
