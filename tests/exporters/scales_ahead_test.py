"""Scales that are searched while a model is imported and captured: the files are the same with them and without."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tiny_checkpoints
import torch

from modelport import OnnxConfig, OnnxExporter
from modelport.cli import main
from modelport.exporters import scales_ahead

FOUR_BITS = {"bits": 4, "block_size": 32, "symmetric": True}


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_checkpoints.save("llama", tmp_path_factory.mktemp("ahead"))


def written(
    llama: Path, out: Path, monkeypatch: pytest.MonkeyPatch, *, ahead: bool, flags: list[str]
) -> dict[str, Any]:
    """The contents of the files of an export, and how many weights had scales found for them."""
    counts: list[int] = []
    with_scales = scales_ahead.with_scales

    def counted(places: Any) -> Any:
        for search in scales_ahead._searches:
            search.finish()  # or it would find as much as there is time for
            if not ahead:
                scales_ahead._searches.clear()
        known = with_scales(places)
        counts.append(sum(len(place) > 3 for place in known.values()))
        return known

    monkeypatch.setattr("modelport.exporters.onnx_program.with_scales", counted)
    assert main(["export", "onnx", str(llama), str(out), "--no-check", *flags]) == 0
    monkeypatch.undo()
    return {"found": sum(counts)} | {file.name: file.read_bytes() for file in out.glob("*.onnx*")}


@pytest.mark.parametrize(
    "flags",
    [
        ["--dtype", "int4"],
        ["--dtype", "int4", "--asymmetric", "--block-size", "16"],
        ["--dtype", "q4f16", "--for", "genai"],
        ["--dtype", "int8", "--int8", "blocks"],
        ["--dtype", "fp16,q4"],
    ],
    ids=" ".join,
)
def test_files_with_scales_found_ahead_are_the_same(
    llama: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: list[str]
) -> None:
    plain = written(llama, tmp_path / "plain", monkeypatch, ahead=False, flags=flags)
    ahead = written(llama, tmp_path / "ahead", monkeypatch, ahead=True, flags=flags)
    assert plain.pop("found") == 0 and ahead.pop("found") > 4
    assert len(plain) >= 2 and plain == ahead


@pytest.mark.parametrize("flags", [[], ["--dtype", "int8"], ["--dtype", "int4", "--quantization-method", "range"]])
def test_nothing_is_searched_that_may_not_be_needed(
    llama: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: list[str]
) -> None:
    assert written(llama, tmp_path / "out", monkeypatch, ahead=True, flags=flags)["found"] == 0


def test_a_folder_without_safetensors_is_left_to_whoever_reads_it(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"nothing of the kind")
    with scales_ahead.scales_ahead(tmp_path, FOUR_BITS, halves=False):
        assert scales_ahead.with_scales({"w": ("file", 0, torch.float32)}) == {"w": ("file", 0, torch.float32)}


def test_what_was_found_ends_with_the_export(llama: Path) -> None:
    with scales_ahead.scales_ahead(llama, FOUR_BITS, halves=False):
        scales_ahead._searches[0].finish()
        scales_ahead.with_scales({})
        assert scales_ahead._found
    assert not scales_ahead._found and not scales_ahead._searches


def test_scales_of_one_checkpoint_are_not_those_of_another(llama: Path, tmp_path: Path) -> None:
    other = tiny_checkpoints.save("llama", tmp_path)
    ids = {"input_ids": torch.ones(1, 4, dtype=torch.int64)}
    config = OnnxConfig(dtype="int4")
    OnnxExporter().export(other, ids, config).save(tmp_path / "plain.onnx")
    with scales_ahead.scales_ahead(llama, FOUR_BITS, halves=False):
        scales_ahead._searches[0].finish()
        OnnxExporter().export(other, ids, config).save(tmp_path / "beside.onnx")
    assert (tmp_path / "plain.onnx_data").read_bytes() == (tmp_path / "beside.onnx_data").read_bytes()
