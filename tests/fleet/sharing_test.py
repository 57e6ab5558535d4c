"""A worker captures a model once for all formats, and what it writes is what the command for one model writes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import tiny_checkpoints
import torch
from fleet_runs import run_here
from tiny_models import tiny

from modelport.cli import main
from modelport.fleet.jobs import FORMATS, Job
from modelport.fleet.memory import estimate
from modelport.fleet.performing import Settings
from modelport.fleet.scheduling import Schedule
from modelport.fleet.worker import Worker

FILES = {"onnx": "model.onnx", "executorch": "model.pte", "pt2": "model.pt2"}


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    """One for all tests, as in a fleet: each has a model of its own."""
    made = Worker()
    yield made
    made.stop()


def export(worker: Worker, model: Path, form: str, out: Path, flags: Sequence[str] = ()) -> dict[str, Any]:
    request = {"format": form, "model": str(model), "flags": ["--no-check", *flags], "out": str(out)}
    return worker.run(request, 300)


def is_shared(answer: dict[str, Any]) -> bool:
    assert answer["ok"], answer
    return answer["result"]["shared"]


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.parametrize("order", [FORMATS, FORMATS[::-1]], ids=["in the order of a fleet", "backwards"])
@pytest.mark.parametrize("name", ["bert", "vit"])
def test_all_formats_of_a_model_take_one_capture_and_are_what_they_are_one_by_one(
    name: str, order: Sequence[str], worker: Worker, tmp_path: Path
) -> None:
    model = tiny_checkpoints.save(name, tmp_path)
    shared = [is_shared(export(worker, model, form, tmp_path / "together" / form)) for form in order]
    assert shared == [False, True, True]
    for form in FORMATS:
        assert main(["export", form, str(model), str(tmp_path / "alone" / form), "--no-check", "-q"]) == 0
        together, alone = files_in(tmp_path / "together" / form), files_in(tmp_path / "alone" / form)
        assert FILES[form] in alone and together == alone


def test_another_type_example_or_file_is_captured_anew(worker: Worker, tmp_path: Path) -> None:
    model = tiny_checkpoints.save("bert", tmp_path)
    assert not is_shared(export(worker, model, "onnx", tmp_path / "1"))
    assert is_shared(export(worker, model, "pt2", tmp_path / "2"))
    for number, flags in enumerate((["--dtype", "fp16"], ["--sequence", "9"], ["--no-dynamic-axes"])):
        assert not is_shared(export(worker, model, "onnx", tmp_path / f"3{number}", flags)), flags
    assert not is_shared(export(worker, model, "onnx", tmp_path / "4"))
    fresh = tiny("bert for masked words")
    with torch.no_grad():
        fresh.get_input_embeddings().weight.add_(1)
    fresh.save_pretrained(model)
    assert not is_shared(export(worker, model, "pt2", tmp_path / "5"))
    weights = fresh.get_input_embeddings().weight.detach().numpy().tobytes()
    assert weights in (tmp_path / "5/model.pt2").read_bytes()


def test_formats_of_one_model_follow_each_other_whatever_they_need(tmp_path: Path) -> None:
    jobs = []
    for number in range(100):
        folder = tmp_path / str(number)
        folder.mkdir()
        with (folder / "model.safetensors").open("wb") as file:
            file.truncate(10_000_000 * (number + 1))
        jobs += [Job(f"{number}-{form}", str(folder), form, ("--no-check",)) for form in FORMATS]
    assert estimate(jobs[2]) > estimate(jobs[0])
    rows: list[dict[str, Any]] = []
    schedule = Schedule(jobs, rows.append)
    schedule.add(_Quick())
    schedule.wait(tuple)
    assert [row["name"] for row in rows[:6]] == [f"{number}-{form}" for number in (99, 98) for form in FORMATS]


class _Quick:
    name, slots, memory = "here", 1, 1 << 50

    def perform(self, slot: int, job: Job) -> dict[str, Any]:
        return {"name": job.name, "ok": True}

    def close(self) -> None: ...


def test_an_export_that_is_refused_between_other_formats_costs_its_row_alone(tmp_path: Path) -> None:
    os.makedirs(tmp_path / "out")
    model = tiny_checkpoints.save("bert", tmp_path)
    settings = Settings(str(tmp_path / "out"), str(tmp_path / "cache"), timeout=300)
    jobs = [Job(form, str(model), form, ("--no-check",)) for form in FORMATS]
    jobs.insert(1, Job("wrong", str(model), "onnx", ("--no-check", "--opset", "3")))
    rows = run_here(jobs, settings, slots=1)
    assert {name for name, row in rows.items() if row["ok"]} == set(FORMATS)
