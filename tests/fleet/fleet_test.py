"""A fleet: what goes wrong with a model costs its row, and what was done is not done again."""

from __future__ import annotations

import dataclasses
import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tiny_checkpoints
from fleet_runs import run_here, times_done

import modelport
from modelport import ExportError
from modelport.cli import main
from modelport.fleet.jobs import Job, read_jobs
from modelport.fleet.memory import estimate
from modelport.fleet.performing import Settings
from modelport.fleet.scheduling import PlaceLost, Schedule

Make = Callable[..., str]


# --- the list ---------------------------------------------------------------------------------------------------------


def test_a_line_is_a_folder_with_flags_of_its_own_and_names_are_made_different(tmp_path: Path) -> None:
    (tmp_path / "models.txt").write_text("# all\n/a/bert --task fill-mask\n\n'/b c/bert'  # another\n/d/vit\n")
    jobs = read_jobs(tmp_path / "models.txt", ["onnx", "pt2"], {"onnx": ["--opset", "20"]})
    assert [(job.name, job.model, job.format, job.flags) for job in jobs[:3]] == [
        ("bert", "/a/bert", "onnx", ("--opset", "20", "--task", "fill-mask")),
        ("bert", "/a/bert", "pt2", ("--task", "fill-mask")),
        ("b c-bert", "/b c/bert", "onnx", ("--opset", "20")),
    ]
    assert len(jobs) == 6


@pytest.mark.parametrize("text", ["", "# nothing\n", "/a/bert 'open\n", "/a/bert\n/a/bert\n"])
def test_a_list_that_says_nothing_or_something_twice_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "models.txt").write_text(text)
    with pytest.raises(ExportError, match="E0306"):
        read_jobs(tmp_path / "models.txt", ["onnx"], {})
    with pytest.raises(ExportError, match="E0103"):
        read_jobs(tmp_path / "none.txt", ["onnx"], {})


# --- crashes and hangs ------------------------------------------------------------------------------------------------


def test_a_model_that_crashes_or_hangs_costs_one_row(checkpoint: Make, settings: Settings, tmp_path: Path) -> None:
    jobs = [Job(f"good{i}", checkpoint(f"good{i}"), "onnx") for i in range(4)]
    jobs.insert(0, Job("crash", checkpoint("crash"), "onnx", ("crash=SIGSEGV",)))
    jobs.insert(2, Job("hang", checkpoint("hang"), "onnx", ("sleep=600",)))
    jobs.append(Job("absent", str(tmp_path / "absent"), "onnx"))
    started = time.monotonic()
    rows = run_here(jobs, dataclasses.replace(settings, timeout=3.0))
    assert time.monotonic() - started < 30
    assert {name for name, row in rows.items() if row["ok"]} == {"good0", "good1", "good2", "good3"}
    assert "SIGSEGV" in rows["crash"]["error"]["what"] and "about to crash" in rows["crash"]["said"]
    assert "longer than 3 s" in rows["hang"]["error"]["what"]
    assert "no such folder" in rows["absent"]["error"]["what"]
    assert (Path(settings.out) / "good0/onnx/model.onnx").read_text().endswith("good0")


def test_workers_stay_for_many_jobs(checkpoint: Make, settings: Settings) -> None:
    rows = run_here([Job(f"m{i}", checkpoint(f"m{i}"), "onnx") for i in range(12)], settings)
    assert len({row["result"]["process"] for row in rows.values()}) <= 2


def test_what_the_system_killed_is_tried_again_alone(checkpoint: Make, settings: Settings, tmp_path: Path) -> None:
    once, always = Job("once", checkpoint("once"), "onnx", (f"once={tmp_path / 'mark'}",)), checkpoint("always")
    rows = run_here([once, Job("always", always, "onnx", ("crash=SIGKILL",))], settings)
    assert rows["once"]["ok"]
    assert "SIGKILL" in rows["always"]["error"]["what"]


# --- the cache --------------------------------------------------------------------------------------------------------


def test_the_same_bytes_settings_and_versions_are_done_once_wherever_they_lie(
    checkpoint: Make, settings: Settings, tmp_path: Path
) -> None:
    first = Job("first", checkpoint("first", "same"), "onnx")
    assert not run_here([first], settings)["first"]["cached"]
    again = run_here([first, Job("second", checkpoint("second", "same"), "onnx")], settings)
    assert all(row["cached"] for row in again.values()) and times_done(tmp_path) == 1
    assert (Path(settings.out) / "second/onnx/model.onnx").exists()
    other = [Job("first", first.model, "onnx", ("--x",)), Job("pt2", first.model, "pt2")]
    assert not any(row["cached"] for row in run_here(other, settings).values())
    Path(first.model, "config.json").write_text("else")
    assert not run_here([first], settings)["first"]["cached"]


def test_a_file_that_was_changed_in_place_is_made_again(checkpoint: Make, settings: Settings) -> None:
    job = Job("one", checkpoint("one"), "onnx")
    run_here([job], settings)
    made = Path(settings.out) / "one/onnx/model.onnx"
    with made.open("a") as file:
        file.write("something")
    row = run_here([job], settings)["one"]
    assert not row["cached"] and made.read_text().endswith("one")


def test_a_refusal_of_the_model_is_kept_and_one_of_the_machine_is_not(
    checkpoint: Make, settings: Settings, tmp_path: Path
) -> None:
    jobs = [Job(code, checkpoint(code), "onnx", (f"refuse={code}",)) for code in ("E0203", "E0103")]
    run_here(jobs, settings)
    rows = run_here(jobs, settings)
    assert rows["E0203"]["cached"] and rows["E0203"]["error"]["code"] == "E0203"
    assert not rows["E0103"].get("cached")
    assert not run_here(jobs, dataclasses.replace(settings, again=True))["E0203"]["cached"]


# --- memory and machines ----------------------------------------------------------------------------------------------


class _Machine:
    """A place without processes that notes how much ran at once."""

    def __init__(self, name: str, memory: int, slots: int = 3, loses: int = 0):
        self.name, self.memory, self.slots, self._loses = name, memory, slots, loses
        self._lock, self._now = threading.Lock(), 0
        self.most = 0

    def perform(self, slot: int, job: Job) -> dict[str, Any]:
        with self._lock:
            self._now += estimate(job)
            self.most = max(self.most, self._now)
            if self._loses:
                raise PlaceLost
        time.sleep(0.02)
        with self._lock:
            self._now -= estimate(job)
        return {"name": job.name, "ok": True}

    def close(self) -> None: ...


def test_no_more_runs_at_once_than_there_is_memory_for(checkpoint: Make) -> None:
    sizes = [10**9, 10**6, 10**6, 2 * 10**9, 10**6, 10**6]
    jobs = [Job(f"m{i}", checkpoint(f"m{i}", size=size), "onnx") for i, size in enumerate(sizes)]
    assert estimate(jobs[3]) > 2 * 10**9 + estimate(jobs[1])
    machine, rows = _Machine("here", memory=int(1.2 * estimate(jobs[0]))), []
    schedule = Schedule(jobs, rows.append)
    schedule.add(machine)
    schedule.wait(tuple)
    assert len(rows) == 6
    assert machine.most == estimate(jobs[3])  # too large for the machine: it ran, and it ran alone
    assert rows[0]["name"] == "m3"  # the largest first


def test_a_machine_that_is_lost_gives_its_jobs_to_the_others(checkpoint: Make) -> None:
    jobs = [Job(f"m{i}", checkpoint(f"m{i}"), "onnx") for i in range(8)]
    rows: list[dict[str, Any]] = []
    schedule = Schedule(jobs, rows.append)
    schedule.add(_Machine("lost", memory=1 << 40, loses=1))
    later = iter([[], [_Machine("late", memory=1 << 40)]])
    schedule.wait(lambda: next(later, []), seconds=0.05) if schedule.left else None
    if schedule.left:  # all slots of the lost one may have ended before the other came
        schedule.add(_Machine("other", memory=1 << 40))
        schedule.wait(tuple)
    assert sorted(row["name"] for row in rows) == [f"m{i}" for i in range(8)]
    assert all(row["place"] != "lost" for row in rows)


# --- the command ------------------------------------------------------------------------------------------------------


def test_the_command_exports_all_models_in_all_formats(tmp_path: Path, capsys: Any) -> None:
    tiny_checkpoints.save("bert", tmp_path)
    (tmp_path / "models.txt").write_text(f"{tmp_path}/bert\n{tmp_path}/absent\n")
    formats = [word for form in ("onnx", "pt2", "executorch") for word in ("--format", form)]
    command = ["fleet", str(tmp_path / "models.txt"), str(tmp_path / "out"), *formats, "--jobs", "1", "--json"]
    assert main(command) == 2
    said = json.loads(capsys.readouterr().out)
    assert (said["made"], said["failed"]) == (3, 3), said
    rows = [json.loads(line) for line in (tmp_path / "out/fleet.jsonl").read_text().splitlines()]
    assert len(rows) == 6 and all(row["result"]["checked"] for row in rows if row["ok"])
    assert "absent" in (tmp_path / "out/index.html").read_text()
    # What a worker wrote is what the command for one model writes.
    assert main(["export", "onnx", f"{tmp_path}/bert", f"{tmp_path}/alone", "--no-check", "-q"]) == 0
    assert modelport.diff(tmp_path / "alone", tmp_path / "out/bert/onnx").same
    assert modelport.load_pt2(tmp_path / "out/bert/pt2/model.pt2").program.node_count() > 50
    assert main(command) == 2
    assert json.loads(capsys.readouterr().out)["kept"] == 3


def test_ctrl_c_leaves_what_was_done(checkpoint: Make, settings: Settings) -> None:
    """As the command does it: no job is begun any more, workers end, and what is done stays in the cache."""
    jobs = [Job("quick", checkpoint("quick"), "onnx"), Job("slow", checkpoint("slow"), "onnx", ("sleep=600",))]
    from modelport.fleet.local_place import LocalPlace

    rows: list[dict[str, Any]] = []
    schedule, place = Schedule(jobs, rows.append), LocalPlace(2, 1 << 40, settings)
    schedule.add(place)
    while not rows:
        time.sleep(0.01)
    schedule.stop()
    place.close()
    assert [row["name"] for row in rows] == ["quick"]
    assert run_here(jobs[:1], settings)["quick"]["cached"]


def test_a_worker_keeps_to_the_model_that_it_has(checkpoint: Make, settings: Settings) -> None:
    models, forms = [checkpoint(f"m{i}") for i in range(6)], ("onnx", "pt2", "executorch")
    jobs = [Job(f"m{i}-{form}", model, form) for i, model in enumerate(models) for form in forms]
    rows = run_here(jobs, settings)
    of_model = [{rows[f"m{i}-{form}"]["result"]["process"] for form in forms} for i in range(6)]
    assert sum(len(processes) == 1 for processes in of_model) >= 4


def test_jobs_are_handed_out_in_a_fraction_of_a_millisecond() -> None:
    jobs = [Job(f"m{i}", "/nowhere", "onnx") for i in range(20_000)]
    rows: list[dict[str, Any]] = []
    schedule, machine = Schedule(jobs, rows.append), _Machine("here", memory=1 << 50, slots=1)
    machine.perform = lambda slot, job: {"name": job.name, "ok": True}  # type: ignore[method-assign]
    started = time.perf_counter()
    schedule.add(machine)
    schedule.wait(tuple)
    assert time.perf_counter() - started < 10
    assert [row["name"] for row in rows[:2]] == ["m0", "m1"] and len(rows) == 20_000
