"""Artifacts of earlier releases: today's readers open them, and they give what they gave."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

import modelport

ARTIFACTS = Path(__file__).resolve().parent
FILES = sorted(path for path in ARTIFACTS.glob("*/model.*"))


def opened(path: Path) -> Any:
    if path.suffix == ".pt2":
        return modelport.load_pt2(path).run
    if path.suffix == ".pte":
        pytest.importorskip("executorch")
    return modelport.load(path)


def tensors(values: dict[str, Any]) -> dict[str, torch.Tensor]:
    return {name: torch.tensor(value) for name, value in values.items()}


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}{path.suffix}")
def test_an_artifact_of_an_earlier_release_gives_what_it_gave(path: Path) -> None:
    run = opened(path)
    for case in json.loads((path.parent / "runs.json").read_text()):
        got, wanted = modelport.get_leaf_tensors(dict(run(**tensors(case["in"])))), tensors(case["out"])
        assert got.keys() == wanted.keys()
        for name, want in wanted.items():
            torch.testing.assert_close(got[name], want, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}{path.suffix}")
def test_an_artifact_of_an_earlier_release_still_refuses_what_it_is_not_for(path: Path) -> None:
    case = tensors(json.loads((path.parent / "runs.json").read_text())[0]["in"])
    with pytest.raises(modelport.ExportError, match=r"E030[14]"):
        opened(path)(input_ids=case["input_ids"], mask=case["mask"][:, 1:])


def test_every_release_has_an_artifact_of_each_format_and_they_are_small() -> None:
    releases = [folder for folder in ARTIFACTS.iterdir() if folder.is_dir() and folder.name[0].isdigit()]
    assert releases
    for folder in releases:
        assert {path.suffix for path in folder.glob("model.*")} == {".pt2", ".onnx", ".pte"}
        assert sum(path.stat().st_size for path in folder.iterdir()) < 60_000
