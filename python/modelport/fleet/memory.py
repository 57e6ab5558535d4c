"""How much memory a job may take, and how much a machine has for jobs."""

from __future__ import annotations

from pathlib import Path

from .jobs import Job

_PROCESS = 700_000_000  # torch, transformers and a runtime, imported
# Of the bytes of a checkpoint. A check has the model and the artifact in memory, in fp32 where the checkpoint has half
# of that; without one weights go from file to file.
_CHECKED, _STREAMED = 4.0, 0.6
_SHARE = 0.9  # of what is free


def estimate(job: Job) -> int:
    size = sum(file.stat().st_size for file in Path(job.model).glob("*.safetensors") if file.is_file())
    streamed = "--no-check" in job.flags and job.format != "pt2"
    return _PROCESS + int(size * (_STREAMED if streamed else _CHECKED))


def available() -> int:
    """Of this machine, or of the container that we are in."""
    found = [_meminfo()]
    limit, used = _number("/sys/fs/cgroup/memory.max"), _number("/sys/fs/cgroup/memory.current")
    if limit is not None and used is not None:
        found.append(max(0, limit - used))
    return int(min(found) * _SHARE)


def _meminfo() -> int:
    try:
        rows = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return 1 << 34
    return next((int(row.split()[1]) * 1024 for row in rows if row.startswith("MemAvailable:")), 1 << 34)


def _number(file: str) -> int | None:
    try:
        return int(Path(file).read_text())
    except (OSError, ValueError):  # "max"
        return None
