"""torch's threads while another runtime computes.

The threads of onnxruntime go on looking for work for a while after each step. What torch does between two steps is
little, but with threads of its own it would wait for the processors that they keep busy: a copy of the logits took six
times as long."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

_lock = threading.Lock()
_inside = 0  # threads that are in `one_thread`
_before = 1  # what the process had before the first of them


@contextmanager
def one_thread() -> Iterator[None]:
    """In this thread torch computes with no other."""
    global _inside, _before
    with _lock:
        if _inside == 0:
            _before = torch.get_num_threads()
        _inside += 1
    torch.set_num_threads(1)
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
        torch.set_num_threads(_before)
