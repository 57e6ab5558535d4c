"""Which machine does which job: the largest first, as many at once as there is memory for.

A machine that is lost gives its jobs back. A job that the system killed, which it does where memory ends, is tried once
more with the machine to itself."""

from __future__ import annotations

import dataclasses
import itertools
import threading
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from .jobs import Job
from .memory import estimate

_NEAR = 64


class PlaceLost(Exception):
    """The machine is gone, and with it what it was doing."""


class Place(Protocol):
    """A machine."""

    name: str
    slots: int  # jobs at once
    memory: int  # bytes for all of them

    def perform(self, slot: int, job: Job) -> dict[str, Any]:
        """The row of a job; raises PlaceLost."""

    def close(self) -> None: ...


@dataclasses.dataclass
class _Waiting:
    job: Job
    bytes: int
    alone: bool = False


class Schedule:
    """Jobs that wait and jobs that run, for one thread a slot."""

    def __init__(self, jobs: Iterable[Job], done: Callable[[dict[str, Any]], None]):
        rows = [_Waiting(job, estimate(job)) for job in jobs]
        most: dict[str, int] = {}
        for row in rows:
            most[row.job.model] = max(row.bytes, most.get(row.job.model, 0))
        # The next is the last; of equal ones the first of the list. Formats of one model stay together.
        self._waiting = rows[::-1]
        self._waiting.sort(key=lambda row: most[row.job.model])
        self._running: dict[str, list[_Waiting]] = {}
        self._done = done
        self._threads: list[threading.Thread] = []
        self._changed = threading.Condition()
        self._failure: BaseException | None = None
        self._over = False

    @property
    def left(self) -> int:
        with self._changed:
            return len(self._waiting) + sum(map(len, self._running.values()))

    def add(self, place: Place) -> None:
        with self._changed:
            self._running.setdefault(place.name, [])
        for slot in range(place.slots):
            thread = threading.Thread(target=self._work, args=(place, slot), daemon=True)
            self._threads.append(thread)
            thread.start()

    def wait(self, more: Callable[[], Iterable[Place]], seconds: float = 1.0) -> None:
        """Until all is done; `more` gives machines that have come since. Without any, jobs that are left stay."""
        while self.left:
            for place in more():
                self.add(place)
            if not any(thread.is_alive() for thread in self._threads):
                break
            with self._changed:
                if self._failure is not None:
                    break
                if self._waiting or any(self._running.values()):
                    self._changed.wait(seconds)
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """No job is begun any more."""
        with self._changed:
            self._over = True
            self._changed.notify_all()

    def unfinished(self) -> list[Job]:
        return [row.job for row in reversed(self._waiting)]

    def _work(self, place: Place, slot: int) -> None:
        try:
            last = ""
            while (row := self._take(place, last)) is not None:
                last = row.job.model
                try:
                    found = place.perform(slot, row.job)
                except PlaceLost:
                    self._give_back(place, row)
                    return
                self._finish(place, row, found)
        except BaseException as error:  # of ours: the one who waits is to know
            with self._changed:
                self._failure = error
                self._changed.notify_all()

    def _take(self, place: Place, last: str) -> _Waiting | None:
        with self._changed:
            while not self._over and (self._waiting or any(self._running.values())):
                index = self._fitting(place, last)
                if index is not None:
                    row = self._waiting.pop(index)
                    self._running[place.name].append(row)
                    return row
                self._changed.wait()
            return None

    def _fitting(self, place: Place, last: str) -> int | None:
        """The next that there is memory for, rather one of the model that the worker just had, which it has captured,
        than of one that another has. What no memory is enough for runs alone. Only the next of a long list
        are looked at, and the smallest."""
        running = self._running[place.name]
        rows = self._waiting
        near = list(range(len(rows) - 1, max(-1, len(rows) - 1 - _NEAR), -1))
        if any(row.alone for row in running):
            return None
        if running:
            free = place.memory - sum(row.bytes for row in running)
            near = [i for i in (*near, *range(min(len(rows), 1))) if rows[i].bytes <= free and not rows[i].alone]
        own = (i for i in near if rows[i].job.model == last)
        busy = {row.job.model for row in running}
        others = (i for i in near if rows[i].job.model not in busy)
        return next(itertools.chain(own, others, near), None)

    def _finish(self, place: Place, row: _Waiting, found: dict[str, Any]) -> None:
        again = found.pop("killed", False) and not row.alone
        with self._changed:
            self._running[place.name].remove(row)
            if self._over:  # nobody waits for it any more
                return
            if again:
                self._waiting.append(_Waiting(row.job, row.bytes, alone=True))
            else:
                self._done(found | {"place": place.name})
            self._changed.notify_all()

    def _give_back(self, place: Place, row: _Waiting) -> None:
        with self._changed:
            self._running[place.name].remove(row)
            self._waiting.append(row)
            self._changed.notify_all()
