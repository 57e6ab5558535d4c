"""This machine: a worker process for each slot."""

from __future__ import annotations

from typing import Any

from .jobs import Job
from .performing import Settings, perform
from .worker import Worker


class LocalPlace:
    name = "here"

    def __init__(self, slots: int, memory: int, settings: Settings):
        self.slots, self.memory, self._settings = slots, memory, settings
        self._workers = [Worker(settings.module) for _ in range(slots)]

    def perform(self, slot: int, job: Job) -> dict[str, Any]:
        return perform(job, self._settings, self._workers[slot])

    def close(self) -> None:
        for worker in self._workers:
            worker.stop()
