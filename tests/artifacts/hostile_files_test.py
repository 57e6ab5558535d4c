"""ONNX files and checkpoints from strangers: what they name is not opened, printed raw, pasted or run."""

from __future__ import annotations

import json
import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import tiny_checkpoints
import torch
from onnx import TensorProto, helper

import modelport
from modelport.artifacts.artifact import Artifact
from modelport.base.printable import one_line, printable
from modelport.cli import main
from modelport.runtimes.sessions import quiet_session

ESCAPE = "\x1b]0;owned\x07\x1b[31m"


def external(location: str | bytes, name: str = "w", offset: str = "0", length: str = "16") -> TensorProto:
    tensor = TensorProto(name=name, data_type=1, dims=[4], data_location=TensorProto.EXTERNAL)
    for key, value in (("location", location), ("offset", offset), ("length", length)):
        tensor.external_data.add(key=key, value=value)
    return tensor


def model_with(path: Path, *tensors: TensorProto, in_attribute: bool = False, names: str = "") -> Path:
    nodes = [helper.make_node("Add", [f"x{names}", "w"], [f"y{names}"])]
    if in_attribute:
        nodes.insert(0, helper.make_node("Constant", [], ["w"], value=tensors[0]))
        tensors = ()
    value = [helper.make_tensor_value_info(f"{name}{names}", 1, [4]) for name in "xy"]
    graph = helper.make_graph(nodes, f"g{names}", value[:1], value[1:], tensors)
    opsets = [helper.make_opsetid("", 17)] + ([helper.make_opsetid(f"{names}evil", 1)] if names else [])
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8, producer_name=f"me{names}")
    if names:
        model.metadata_props.add(key="modelport.capturing.guards", value=json.dumps([f"a > 3 {names}"]))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(model.SerializeToString())
    return path


def weights(path: Path) -> Path:
    path.write_bytes(np.arange(4, dtype=np.float32).tobytes())
    return path


def refusal(call: Any) -> str:
    with pytest.raises(modelport.ExportError) as raised:
        call()
    assert raised.value.code == "E0103"
    return str(raised.value)


# --- external data ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("in_attribute", [False, True])
@pytest.mark.parametrize(
    "location", ["../secret.bin", "{absolute}", "link.bin", "linked_folder/secret.bin", "sub/../../secret.bin"]
)
def test_data_outside_the_folder_is_refused_before_onnxruntime_sees_it(
    tmp_path: Path, location: str, in_attribute: bool
) -> None:
    secret = weights(tmp_path / "secret.bin")
    folder = tmp_path / "model"
    (folder / "sub").mkdir(parents=True)
    (folder / "link.bin").symlink_to(secret)
    (folder / "linked_folder").symlink_to(tmp_path)
    location = location.format(absolute=secret)
    path = model_with(folder / "model.onnx", external(location), in_attribute=in_attribute)
    for opened in (path, folder):
        assert "outside the folder" in refusal(lambda: modelport.load(opened))  # noqa: B023
    assert "outside the folder" in refusal(lambda: quiet_session(path))
    assert "outside the folder" in refusal(lambda: modelport.check(path, torch.nn.Identity(), {"x": torch.ones(4)}))
    if not in_attribute:
        assert Artifact(path).weight_files()[0]["state"].startswith("outside")


@pytest.mark.parametrize("location", ["*/_ORT_MEM_ADDR_/*", "/dev/zero", "a\0b", "."])
def test_data_that_is_no_file_is_refused(tmp_path: Path, location: str) -> None:
    path = model_with(tmp_path / "model.onnx", external(location))
    refusal(lambda: quiet_session(path))


def test_of_two_locations_both_have_to_be_inside(tmp_path: Path) -> None:
    weights(tmp_path / "secret.bin")
    (tmp_path / "model").mkdir()
    weights(tmp_path / "model" / "w.bin")
    tensor = external("../secret.bin")
    tensor.external_data.add(key="location", value="w.bin")
    path = model_with(tmp_path / "model" / "model.onnx", tensor)
    assert "outside" in refusal(lambda: quiet_session(path))


def test_data_in_the_folder_is_read_also_through_links_of_the_hub(tmp_path: Path) -> None:
    blobs = tmp_path / "blobs"
    blobs.mkdir()
    weights(blobs / "1234")
    model_with(blobs / "5678", external("w.bin"))
    snapshot = tmp_path / "snapshots" / "main"
    snapshot.mkdir(parents=True)
    (snapshot / "w.bin").symlink_to(blobs / "1234")
    (snapshot / "model.onnx").symlink_to(blobs / "5678")
    assert Artifact(snapshot / "model.onnx").weight_files()[0]["state"] == "whole"
    plain = tmp_path / "plain"
    plain.mkdir()
    os.link(blobs / "1234", plain / "w.bin")  # as --weights link makes them
    path = model_with(plain / "model.onnx", external("w.bin"))
    assert modelport.load(path)(x=np.zeros(4, np.float32))["y"].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("place", ["18446744073709551616", "99999999999999999999999", "-1", "", "0x10"])
def test_offsets_and_lengths_that_are_no_numbers_are_errors(tmp_path: Path, place: str) -> None:
    weights(tmp_path / "w.bin")
    for tensor in (external("w.bin", offset=place), external("w.bin", length=place)):
        path = model_with(tmp_path / "model.onnx", tensor)
        assert "in its file is" in refusal(lambda: Artifact(path))  # noqa: B023
    path = model_with(tmp_path / "model.onnx", external("w.bin", offset="18446744073709551615"))
    assert "beyond the end" in refusal(lambda: Artifact(path))


@pytest.mark.parametrize(
    "value",
    ["[" * 200_000, "{}", '{"a": 3}', '{"version": 1, "inputs": 3}', '{"version": 1, "inputs": [{"name": "x"}]}'],
    ids=["nested without end", "empty", "another", "a number for a list", "an input without a shape"],
)
def test_limits_of_another_form_are_refused(tmp_path: Path, value: str) -> None:
    weights(tmp_path / "w.bin")
    path = model_with(tmp_path / "model.onnx", external("w.bin"))
    model = onnx.load(path, load_external_data=False)
    model.metadata_props.add(key="modelport.limits", value=value)
    path.write_bytes(model.SerializeToString())
    assert "E0103" in refusal(lambda: Artifact(path).limits)


# --- what is printed --------------------------------------------------------------------------------------------------


def test_text_from_files_cannot_steer_a_terminal() -> None:
    assert printable("a\x1b[2Jb\x9bc\u202ed\r\x07\x7f") == "a\\x1b[2Jb\\x9bc\\u202ed\\r\\x07\\x7f"
    assert printable("two\nlines\tand ümlauts…") == "two\nlines\tand ümlauts…"
    assert printable(os.fsdecode(b"\xff")) == "\\udcff"
    assert one_line("name\nerror: forged") == "name\\nerror: forged"


def test_names_in_a_file_carry_no_escapes_to_the_terminal(tmp_path: Path, capfd: Any) -> None:
    weights(tmp_path / "w.bin")
    path = model_with(tmp_path / "model.onnx", external("w.bin"), names=f"{ESCAPE}\nforged")
    assert main(["inspect", str(path)]) == 0
    shown = capfd.readouterr().out
    assert "\\x1b]0;owned" in shown and "\x1b" not in shown and "\x07" not in shown
    assert not any(line.startswith("forged") for line in shown.splitlines())
    with pytest.raises(modelport.ExportError) as raised:
        modelport.load(path)(nothing=1)
    assert "\\x1b]0;owned" in str(raised.value) and "\x1b" not in str(raised.value)
    broken = model_with(tmp_path / "broken.onnx", external(f"{ESCAPE}.bin", name=f"w{ESCAPE}"))
    assert main(["check", str(broken)]) == 2
    assert "\x1b" not in capfd.readouterr().err


def test_what_a_model_says_cannot_steer_a_terminal(monkeypatch: Any) -> None:
    from modelport.cli.run_model import _shown

    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert _shown("a\x1b[31m\n") == "a\\x1b[31m\n"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: False, raising=False)
    assert _shown("a\x1b[31m\n") == "a\x1b[31m\n"


def test_a_path_in_a_command_to_type_is_one_word(tmp_path: Path, capsys: Any) -> None:
    folder = tmp_path / "it's $(mine); ls"
    folder.mkdir()
    assert main(["inspect", str(folder)]) == 2
    [way] = [line for line in capsys.readouterr().err.splitlines() if "modelport export onnx" in line]
    command = way.partition("modelport export onnx ")[2]
    words = subprocess.run(["sh", "-c", f"printf '%s\\n' {command}"], capture_output=True, text=True, check=True)
    assert words.stdout.splitlines() == [str(folder), "OUT"]


# --- tokens -----------------------------------------------------------------------------------------------------------


def test_negative_tokens_are_refused(tmp_path: Path) -> None:
    folder = tiny_checkpoints.save("bert", tmp_path)
    assert main(["export", "onnx", str(folder), str(tmp_path / "out"), "-q", "--no-check"]) == 0
    model = modelport.load(tmp_path / "out")
    mask = [[1, 1, 1]]
    model(input_ids=[[1, 5, 2]], attention_mask=mask, token_type_ids=[[0, 0, 0]])
    with pytest.raises(modelport.ExportError, match=r"E0301.*the token -1"):
        model(input_ids=[[1, -1, 2]], attention_mask=mask, token_type_ids=[[0, 0, 0]])


# --- code in a checkpoint ---------------------------------------------------------------------------------------------


@pytest.fixture
def own_code(tmp_path: Path) -> tuple[Path, Path]:
    """A checkpoint whose model, config and tokenizer are code in its folder; it leaves a file when it runs."""
    folder = tiny_checkpoints.save("bert", tmp_path)
    ran = tmp_path / "ran"
    config = json.loads((folder / "config.json").read_text())
    code = {"AutoConfig": "mine.MyConfig", "AutoModel": "mine.MyBert", "AutoModelForMaskedLM": "mine.MyBert"}
    config |= {"architectures": ["MyBert"], "model_type": "my_bert", "auto_map": code}
    (folder / "config.json").write_text(json.dumps(config))
    tokenizer = {"tokenizer_class": "MyTokenizer", "auto_map": {"AutoTokenizer": ["words.MyTokenizer", None]}}
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer))
    (folder / "tokenizer.json").write_text("{}")
    for name in ("mine", "words"):
        text = f"from .parts import anything\nopen({str(ran)!r}, 'w').close()\n"
        text += "class MyConfig: pass\nclass MyBert: pass\nclass MyTokenizer: pass\n"
        (folder / f"{name}.py").write_text(text)
    (folder / "parts.py").write_text("anything = 1\n")
    return folder, ran


def test_code_in_a_checkpoint_is_named_and_does_not_run(own_code: Any) -> None:
    from transformers import AutoModelForMaskedLM

    from modelport.running.prompt import Reader

    folder, ran = own_code
    inputs = {"input_ids": torch.ones(1, 3, dtype=torch.long)}
    for call in (
        lambda: modelport.capture(folder, inputs, model_class=AutoModelForMaskedLM),
        lambda: Reader(folder),
    ):
        with pytest.raises(modelport.ExportError, match="E0308") as raised:
            call()
        assert "trust-remote-code" in str(raised.value) and "parts.py" in str(raised.value)
        assert any(name in str(raised.value) for name in ("mine.py", "words.py"))
    assert not ran.exists()


def test_nobody_is_asked_about_code_at_a_terminal(own_code: Any, tmp_path: Path) -> None:
    """In a terminal where somebody says yes to everything."""
    folder, ran = own_code
    shutil.copytree(folder, tmp_path / "onnx")
    asking = f"""
import modelport, torch
from pathlib import Path
from transformers import AutoModelForMaskedLM
from modelport.running.prompt import Reader
for call in (
    lambda: modelport.capture({str(folder)!r}, {{"input_ids": torch.ones(1, 3, dtype=torch.long)}},
                              model_class=AutoModelForMaskedLM),
    lambda: Reader(Path({str(folder)!r})),
):
    try:
        call()
    except modelport.ExportError as error:
        print("refused", error.code)
"""
    main_end, other_end = pty.openpty()
    os.write(main_end, b"y\ny\ny\ny\n")
    done = subprocess.run([sys.executable, "-c", asking], stdin=other_end, capture_output=True, text=True, timeout=300)
    os.close(main_end)
    os.close(other_end)
    assert done.stdout.count("refused E0308") == 2, done.stdout + done.stderr
    assert "Do you wish" not in done.stdout and not ran.exists()


def test_code_that_is_trusted_is_named_before_it_runs(own_code: Any, tmp_path: Path, capsys: Any) -> None:
    folder, ran = own_code
    assert main(["export", "onnx", str(folder), str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert "mine.py" in said and "parts.py" in said and "--trust-remote-code" in said and not ran.exists()
    main(["export", "onnx", str(folder), str(tmp_path / "out"), "--trust-remote-code"])
    said = capsys.readouterr().err
    assert said.index("note: Python code") < said.index("mine.py") and "words.py" in said
    assert ran.exists()


# --- the build --------------------------------------------------------------------------------------------------------


def test_another_torch_gives_one_plain_message() -> None:
    code = "import torch\ntorch.__version__ = '2.99.0'\nimport modelport\nmodelport.capture"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    last = [line for line in done.stderr.splitlines() if line.strip()]
    message = "\n".join(last)
    assert "was built for torch" in message and "torch 2.99.0 is installed" in message
    assert "pip install 'torch==" in message and "undefined symbol" not in message


def test_the_command_line_gives_it_without_a_traceback(tmp_path: Path) -> None:
    folder = tiny_checkpoints.save("bert", tmp_path)
    arguments = ["export", "onnx", str(folder), str(tmp_path / "out")]
    code = (
        f"import torch, sys\ntorch.__version__ = '2.99.0'\nfrom modelport.cli import main\nsys.exit(main({arguments}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 2
    assert "was built for torch" in done.stderr and "Traceback" not in done.stderr
