"""Ctrl-C that works at once, also while C++ is writing gigabytes or a runtime computes."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_GRACE = 1.0  # seconds in which Python itself may end the command


@contextmanager
def interruptible(discard: Callable[[], bool]) -> Iterator[None]:
    """Within it, an interrupt that Python does not get to handle ends the process with 130, after `discard`, which says
    whether there was something to discard.

    Python raises KeyboardInterrupt when the call that is running returns; but the handler in C writes to a pipe at
    once, and a thread reads it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    over = threading.Event()
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    thread = threading.Thread(target=_watch, args=(reader, over, discard), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        signal.set_wakeup_fd(before)
        os.close(writer)
        thread.join()
        os.close(reader)


def _watch(reader: int, over: threading.Event, discard: Callable[[], bool]) -> None:
    while True:
        signals = os.read(reader, 16)
        if not signals:
            return
        if signal.SIGINT in signals and not over.wait(_GRACE):
            was = "what was there before is still there" if discard() else "the new artifact has taken its place"
            print(f"\nerror: interrupted; {was}", file=sys.stderr, flush=True)
            os._exit(130)
        time.sleep(0)
