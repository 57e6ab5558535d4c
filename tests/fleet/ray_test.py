"""A fleet on a Ray cluster of two nodes, one of which is killed in the middle."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fleet_runs import times_done

from modelport.cli import main
from modelport.fleet.jobs import Job
from modelport.fleet.performing import Settings
from modelport.fleet.ray_places import RayPlaces
from modelport.fleet.scheduling import Schedule


@pytest.fixture
def cluster(settings: Settings) -> Iterator[Any]:
    """Two nodes; after `settings`, whose surroundings the nodes take over."""
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        yield made
    finally:
        made.shutdown()


def test_a_node_that_is_killed_in_the_middle_loses_nothing(
    cluster: Any, checkpoint: Callable[..., str], settings: Settings, tmp_path: Path
) -> None:
    second = cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    gate = tmp_path / "gate"
    gate.mkdir()
    jobs = [Job(f"m{i}", checkpoint(f"m{i}"), "onnx", (f"gate={gate}",)) for i in range(14)]
    jobs.append(Job("crash", checkpoint("crash"), "onnx", ("crash=SIGSEGV",)))
    rows: list[dict[str, Any]] = []
    places = RayPlaces(cluster.address, dataclasses.replace(settings, timeout=200), 1 << 40)
    schedule = Schedule(jobs, rows.append)
    killer = threading.Thread(target=_kill_at, args=(gate, cluster, second))
    killer.start()
    try:
        for place in places.new():
            schedule.add(place)
        schedule.wait(places.new)
    finally:
        killer.join()
        schedule.stop()
        places.close()
    assert schedule.left == 0
    assert sorted(row["name"] for row in rows) == sorted(job.name for job in jobs)
    failed = [row for row in rows if not row["ok"]]
    assert [row["name"] for row in failed] == ["crash"] and "SIGSEGV" in failed[0]["error"]["what"]
    by_node = Counter(row["place"] for row in rows)
    # Both did the first job of a worker, one of them perhaps of two, of which one crashed; the rest waited at the gate.
    assert len(by_node) == 2 and min(by_node.values()) <= 3
    assert all((Path(settings.out) / job.name / "onnx/model.onnx").exists() for job in jobs if job.name != "crash")
    assert times_done(tmp_path) >= 14


def _kill_at(gate: Path, cluster: Any, node: Any) -> None:
    """When both nodes have done something and are at the next job, which goes on when the worker of one is gone."""

    def waiting() -> int:
        return sum(_is_running(int(file.name.removeprefix("waits-"))) for file in gate.glob("waits-*"))

    end = time.monotonic() + 100
    while waiting() < 2 and time.monotonic() < end:
        time.sleep(0.02)
    cluster.remove_node(node, allow_graceful=False)
    while waiting() == 2 and time.monotonic() < end:
        time.sleep(0.02)
    (gate / "open").touch()


def _is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes() != b""  # one that ended and was not waited for has none
    except OSError:
        return False


def test_a_cluster_that_is_not_there_is_said_so(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "models.txt").write_text("/a/bert\n")
    command = ["fleet", str(tmp_path / "models.txt"), str(tmp_path / "out"), "--ray", "127.0.0.1:1"]
    assert main(command) == 2
    assert "E0306" in capsys.readouterr().err
