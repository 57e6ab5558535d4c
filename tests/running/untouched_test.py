"""Room of a cache that is taken when it is written to."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

from modelport.running.untouched import untouched_zeros


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def one_room() -> torch.Tensor:
    return untouched_zeros([(1, 8, 1 << 16, 128)], [torch.float32])[0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.int8])
@pytest.mark.parametrize("tokens", [0, 3, 1 << 16])
def test_room_is_zeros_that_can_be_written(tokens: int, dtype: torch.dtype) -> None:
    for room in untouched_zeros([(2, 2, tokens, 32), (1, 3, tokens, 7)], [dtype, dtype]):
        assert room.shape[2] == tokens and room.dtype == dtype and room.is_contiguous()
        assert not room.any()  # what was written to the one before is not in it
        room[:, :, :2] = 1
        assert room[:, :, :2].eq(1).all() and not room[:, :, 2:].any()


def test_tensors_of_several_types_lie_in_one_piece() -> None:
    words, numbers = untouched_zeros([(1, 1, 1 << 21, 3), (1, 1, 1 << 20, 8)], [torch.int8, torch.float32])
    words[:], numbers[:] = 1, 2.5
    assert words.eq(1).all() and numbers.eq(2.5).all()
    assert numbers.data_ptr() == words.data_ptr() + words.nbytes


def test_memory_is_taken_when_it_is_written_to() -> None:
    before = resident_bytes()
    room = one_room()
    assert room.nbytes == 256 << 20
    assert resident_bytes() - before < 16 << 20
    room[:, :, : 1 << 15] = 1
    assert resident_bytes() - before > 100 << 20


def test_memory_is_given_back() -> None:
    room = one_room()
    room[:] = 1
    before = resident_bytes()
    del room
    assert before - resident_bytes() > 200 << 20
