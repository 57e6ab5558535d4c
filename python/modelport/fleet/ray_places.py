"""The nodes of a Ray cluster: on each as many actors as it has processors, each with a worker process of its own.

A model that crashes ends the worker and not the actor, so an actor that is gone means that its node is. What nodes read
and write (checkpoints, OUT, the cache) has to lie where all of them see it."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator
from typing import Any

from ..base.errors import problem
from .jobs import Job
from .memory import available
from .performing import Settings, perform
from .scheduling import PlaceLost
from .worker import Worker

_GRACE = 300.0  # seconds beyond the limit of a job, for reading a checkpoint's bytes and linking files


class _Slot:
    """What runs on a node."""

    def __init__(self, module: str) -> None:
        self._worker = Worker(module)

    def memory(self) -> int:
        return available()

    def perform(self, job: Job, settings: Settings) -> dict[str, Any]:
        return perform(job, settings, self._worker)

    def stop(self) -> None:
        self._worker.stop()


class RayPlaces:
    """`new()` gives the nodes that have not been given before."""

    def __init__(self, address: str, settings: Settings, memory: int | None):
        try:
            import ray
        except ImportError as error:
            raise problem("E0307", "--ray needs Ray, which is not installed", "pip install 'modelport[ray]'") from error
        self._ray, self._settings, self._memory = ray, settings, memory
        _refuse_absent(address)
        try:
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, ignore_reinit_error=True)
        except (ConnectionError, ValueError, RuntimeError, ray.exceptions.RayError) as error:
            raise _no_cluster(address, error) from error
        self._known: set[str] = set()
        self._places: list[_RayPlace] = []

    def new(self) -> Iterator[_RayPlace]:
        for node in self._ray.nodes():
            slots = int(node["Resources"].get("CPU", 0)) if node["Alive"] else 0
            if slots == 0 or node["NodeID"] in self._known:
                continue
            self._known.add(node["NodeID"])
            try:
                place = _RayPlace(self._ray, node["NodeID"], slots, self._settings, self._memory)
            except PlaceLost:
                continue
            self._places.append(place)
            yield place

    def close(self) -> None:
        for place in self._places:
            place.close()
        self._ray.shutdown()


class _RayPlace:
    def __init__(self, ray: Any, node: str, slots: int, settings: Settings, memory: int | None):
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        self._ray, self.name, self.slots, self._settings = ray, node[:8], slots, settings
        # Tied to its node: one that is lost is not begun elsewhere behind our back.
        strategy = NodeAffinitySchedulingStrategy(node_id=node, soft=False)
        kind = ray.remote(_Slot).options(num_cpus=1, max_restarts=0, scheduling_strategy=strategy)
        self._actors = [kind.remote(settings.module) for _ in range(slots)]
        self.memory = memory or self._ask(self._actors[0].memory.remote(), _GRACE)

    def perform(self, slot: int, job: Job) -> dict[str, Any]:
        answer = self._actors[slot].perform.remote(job, self._settings)
        return self._ask(answer, self._settings.timeout + _GRACE)

    def _ask(self, answer: Any, seconds: float) -> Any:
        try:
            return self._ray.get(answer, timeout=seconds)
        except (self._ray.exceptions.RayError, TimeoutError) as error:
            if isinstance(error, self._ray.exceptions.RayTaskError):  # an exception of our own code
                raise
            raise PlaceLost(str(error)) from error

    def close(self) -> None:
        for actor in self._actors:
            self._ray.kill(actor)


def _refuse_absent(address: str) -> None:
    """Ray itself would try for minutes."""
    host, _, port = address.rpartition(":")
    if not port.isdecimal():
        return
    try:
        socket.create_connection((host.rpartition("/")[2], int(port)), timeout=5).close()
    except OSError as error:
        raise _no_cluster(address, error) from error


def _no_cluster(address: str, error: Exception) -> Exception:
    first = (str(error).splitlines() or [type(error).__name__])[0]
    what = f"there is no Ray cluster at {address}: {first}"
    return problem("E0306", what, "start one: ray start --head", "on a node of a cluster: --ray auto")
