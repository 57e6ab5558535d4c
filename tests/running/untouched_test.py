"""Room of a cache that is taken when it is written to."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

from modelport.running.untouched import untouched_zeros


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.int8])
@pytest.mark.parametrize("tokens", [0, 3, 1 << 16])
def test_room_is_zeros_that_can_be_written(tokens: int, dtype: torch.dtype) -> None:
    room = untouched_zeros((2, 2, tokens, 32), dtype)
    assert room.shape == (2, 2, tokens, 32) and room.dtype == dtype and room.is_contiguous()
    assert not room.any()
    room[:, :, :2] = 1
    assert room[:, :, :2].eq(1).all() and not room[:, :, 2:].any()


def test_memory_is_taken_when_it_is_written_to() -> None:
    before = resident_bytes()
    room = untouched_zeros((1, 8, 1 << 16, 128), torch.float32)
    assert room.nbytes == 256 << 20
    assert resident_bytes() - before < 16 << 20
    room[:, :, : 1 << 15] = 1
    assert resident_bytes() - before > 100 << 20


def test_memory_is_given_back() -> None:
    room = untouched_zeros((1, 8, 1 << 16, 128), torch.float32)
    room[:] = 1
    before = resident_bytes()
    del room
    assert before - resident_bytes() > 200 << 20
