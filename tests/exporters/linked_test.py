"""Fingerprints of files that are linked: read while something else goes on, and again if the file changed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from modelport import _artifact
from modelport.exporters.linked import fingerprint_meanwhile, linked
from modelport.hub.files import INDEX, weights_in


def prints(file: Path, model: Path) -> dict[str, str]:
    with linked({"weight": (os.fspath(file), 0)}, model) as (_, found):
        return found


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "model.safetensors"
    file.write_bytes(bytes(range(256)) * 100)
    return file


def test_a_file_that_was_read_ahead_is_not_read_again(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = _artifact.fingerprint(os.fspath(file))
    fingerprint_meanwhile([tmp_path / "missing.safetensors", file])
    (tmp_path / "out").mkdir()
    with monkeypatch.context() as patched:
        assert prints(file, tmp_path / "out" / "model.onnx") == {"model.onnx_data": expected}
        patched.delattr(_artifact, "fingerprint")
        assert prints(file, tmp_path / "out" / "model.onnx") == {"model.onnx_data": expected}


def test_a_file_that_changed_after_it_was_read_ahead_is_read_again(file: Path, tmp_path: Path) -> None:
    fingerprint_meanwhile([file])
    before = prints(file, tmp_path / "model.onnx")
    file.write_bytes(bytes(reversed(range(256))) * 100)
    os.utime(file, ns=(1, 1))
    after = prints(file, tmp_path / "model.onnx")
    assert after == {"model.safetensors": _artifact.fingerprint(os.fspath(file))} != before


def test_the_weights_of_a_folder_are_those_of_its_index(file: Path, tmp_path: Path) -> None:
    assert weights_in(tmp_path) == ["model.safetensors"]
    file.rename(tmp_path / "a-00001.safetensors")
    (tmp_path / "consolidated.safetensors").touch()
    assert weights_in(tmp_path) == []
    (tmp_path / INDEX).write_text('{"weight_map": {"w": "a-00001.safetensors"}}')
    assert weights_in(tmp_path) == ["a-00001.safetensors"]
    (tmp_path / INDEX).write_text("[")
    assert weights_in(tmp_path) == []
    assert weights_in(tmp_path / "missing") == []
