"""The most memory that this process had at once, since it was last asked to forget: as Linux counts it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

_RESET = "5"  # proc(5): the peak becomes what is used now


def forget_peak() -> None:
    """From now on. Where the system does not let us, the peak stays that of the whole process."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text(_RESET)


def peak_memory() -> int | None:
    """In bytes; None where the system does not tell."""
    try:
        rows = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return None
    return next((int(row.split()[1]) * 1024 for row in rows if row.startswith("VmHWM:")), None)
