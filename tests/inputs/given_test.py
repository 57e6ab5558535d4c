"""Inputs from a file: what is read, what is refused, and that commands use them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_checkpoints
import torch
from safetensors.torch import save_file
from tiny_models import tiny

from modelport import ExportError
from modelport.cli import main
from modelport.inputs.given import check_names, read_inputs

IDS = torch.arange(5, 26).reshape(3, 7)


def write(folder: Path, kind: str) -> Path:
    path = folder / f"inputs.{kind}"
    if kind == "safetensors":
        save_file({"input_ids": IDS}, path)
    elif kind == "npz":
        np.savez(path, input_ids=IDS.numpy())
    else:
        path.write_text("import numpy as np\ndef inputs():\n    return {'input_ids': np.arange(5, 26).reshape(3, 7)}")
    return path


@pytest.mark.parametrize("kind", ["safetensors", "npz", "py"])
def test_tensors_are_read_by_name(kind: str, tmp_path: Path) -> None:
    found = read_inputs(write(tmp_path, kind))
    assert list(found) == ["input_ids"] and torch.equal(found["input_ids"], IDS)


def test_python_may_give_what_no_other_file_holds(tmp_path: Path) -> None:
    path = tmp_path / "inputs.py"
    path.write_text(
        "import numpy as np\ninputs = {'sizes': [(1, 2)], 'flag': True, 'nested': [np.ones(2)], 'none': None}"
    )
    found = read_inputs(path)
    assert found["sizes"] == [(1, 2)] and found["flag"] is True and found["none"] is None
    assert torch.equal(found["nested"][0], torch.ones(2, dtype=torch.float64))


def test_files_that_give_no_inputs_are_refused_with_the_reason(tmp_path: Path) -> None:
    cases = {
        "none.npz": (None, "no such file"),
        "weights.bin": ("pickle", "no kind of file"),
        "bad.npz": ("no arrays", "cannot be read"),
        "bad.safetensors": ("no header", "cannot be read"),
        "lacks.py": ("input = {}", "has no name inputs"),
        "list.py": ("inputs = [1]", "gives a list"),
        "empty.py": ("inputs = {}", "gives nothing"),
        "fails.py": ("x = 1\ndef inputs():\n    return x / 0", "fails.py:3: ZeroDivisionError"),
        "typo.py": ("inputs = {", "SyntaxError"),
    }
    for name, (text, reason) in cases.items():
        if text is not None:
            (tmp_path / name).write_text(text)
        with pytest.raises(ExportError) as error:
            read_inputs(tmp_path / name)
        assert error.value.code == "E0318" and reason in str(error.value), name
        assert error.value.diagnostics[0]["ways_out"]


def test_a_name_that_the_model_does_not_know_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="takes no input 'input_id'") as error:
        check_names({"input_id": IDS}, tiny("llama"), "inputs.npz")
    assert error.value.code == "E0301" and "you may mean input_ids" in str(error.value)
    check_names({"input_ids": IDS}, type(tiny("llama")), "inputs.npz")


def call(*args: object) -> int:
    return main([str(arg) for arg in args])


def test_commands_take_the_inputs_of_a_file(tmp_path: Path, capsys: Any) -> None:
    folder, path = tiny_checkpoints.save("llama", tmp_path), write(tmp_path, "npz")
    assert call("capture", folder, "--inputs", path, "--json") == 0
    shown = json.loads(capsys.readouterr().out)["inputs"]
    assert [row["name"] for row in shown] == ["input_ids"]
    assert call("export", "onnx", folder, tmp_path / "plain.onnx", "--inputs", path, "--json") == 0
    rows = json.loads(capsys.readouterr().out)["check"]["rows"]
    assert sorted(rows[0]["axes"].values()) == [3, 7]
    assert call("export", "onnx", folder, tmp_path / "out", "--inputs", path, "-q") == 0  # one that generates
    assert call("check", tmp_path / "plain.onnx", "--inputs", path, "-q") == 0
    assert call("check", tmp_path / "out", "--inputs", path, "-q") == 0
    save_file({"ids": IDS}, tmp_path / "wrong.safetensors")
    assert call("export", "onnx", folder, tmp_path / "no", "--inputs", tmp_path / "wrong.safetensors", "-q") == 2
    assert "takes no input 'ids'" in capsys.readouterr().err and not (tmp_path / "no").exists()
