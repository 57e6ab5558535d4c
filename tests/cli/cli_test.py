"""The command line: what it writes, what it refuses, and what it leaves behind."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import tiny_checkpoints
import torch

from modelport.cli import main


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checkpoints")
    for name in tiny_checkpoints.MAKERS:
        tiny_checkpoints.save(name, folder)
    return folder


@pytest.fixture
def bert(checkpoints: Path) -> str:
    return str(checkpoints / "bert")


def call(*args: object) -> int:
    try:
        return main([str(arg) for arg in args])
    except SystemExit as left:  # argparse
        return int(left.code or 0)


def tree(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


# --- export -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", tiny_checkpoints.MAKERS)
def test_an_export_is_checked_and_stands_in_its_folder(
    name: str, checkpoints: Path, tmp_path: Path, capsys: Any
) -> None:
    assert call("export", "onnx", checkpoints / name, tmp_path / "out", "--json") == 0
    data = json.loads(capsys.readouterr().out)
    assert data["ok"] and data["check"]["ok"]
    assert {row["size"] for row in data["check"]["rows"]} == {"example", "batch 1", "longer", "odd"}
    assert {"capture", "write", "check"} <= set(data["seconds"])
    assert sorted(os.listdir(tmp_path / "out")) == [
        ".modelport.json", "config.json", *(["generation_config.json"] if name == "llama" else []),
        "model.onnx", "model.onnx_data", "tokenizer_config.json",
    ]  # fmt: skip
    assert os.listdir(tmp_path) == ["out"]
    assert call("check", tmp_path / "out") == 0


def test_a_file_is_written_where_the_output_is_called_one(bert: str, tmp_path: Path, capsys: Any) -> None:
    assert call("export", "onnx", "-m", bert, tmp_path / "deep" / "er" / "bert.onnx", "--no-external-data") == 0
    assert os.listdir(tmp_path / "deep" / "er") == ["bert.onnx"]
    assert "wrote" in capsys.readouterr().out


@pytest.mark.parametrize("out", ["folder", "file.onnx"])
def test_linked_weights_are_the_files_of_the_checkpoint(out: str, bert: str, tmp_path: Path) -> None:
    assert call("export", "onnx", bert, tmp_path / out, "--weights", "link", "--quiet") == 0
    data = next(tmp_path.rglob("*.onnx_data"))
    assert data.samefile(Path(bert) / "model.safetensors")
    assert call("check", tmp_path / out, "-q") == 0


def test_linked_weights_in_the_folder_of_the_checkpoint_need_no_second_name(bert: str, tmp_path: Path) -> None:
    shutil.copytree(bert, tmp_path / "bert")
    out = tmp_path / "bert" / "model.onnx"
    assert call("export", "onnx", tmp_path / "bert", out, "--weights", "link", "-q") == 0
    assert not list(tmp_path.rglob("*_data")) and not list(tmp_path.rglob("*.partial"))
    assert (tmp_path / "bert" / "model.safetensors").stat().st_nlink == 1


def test_flags_reach_the_export(bert: str, tmp_path: Path, capsys: Any) -> None:
    flags = (
        "--opset",
        20,
        "--dtype",
        "fp16",
        "--no-dynamic-axes",
        "--batch",
        3,
        "--sequence",
        9,
        "--shard-size",
        "20KB",
    )
    assert call("export", "onnx", bert, tmp_path / "out", *flags, "--task", "fill-mask", "--json") == 0
    data = json.loads(capsys.readouterr().out)
    assert len(data["files"]) > 2
    assert [skip["size"] for skip in data["check"]["skipped"]] == ["batch 1", "longer", "odd"]
    assert data["check"]["atol"] == 0.15
    assert call("inspect", tmp_path / "out", "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["opsets"]["ai.onnx"] == 20
    assert facts["inputs"][0] == {"name": "input_ids", "dtype": "i64", "shape": ["3", "9"]}
    assert facts["outputs"][0]["dtype"] == "f16"


def test_flags_of_optimum_that_make_no_difference_are_taken_with_a_note(bert: str, tmp_path: Path, capsys: Any) -> None:
    flags = ("--device", "cpu", "--framework", "pt", "--monolith", "--no-post-process", "--no-check")
    assert call("export", "onnx", bert, tmp_path / "out", *flags) == 0
    assert capsys.readouterr().err.count("makes no difference") == 4


def test_an_export_over_an_older_one_keeps_what_is_not_ours(bert: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert call("export", "onnx", bert, out, "--no-check", "-q", "--shard-size", "20KB") == 0
    (out / "notes.txt").write_text("mine")
    assert call("export", "onnx", bert, out, "--no-check", "-q") == 0
    assert (out / "notes.txt").read_text() == "mine"
    assert [name for name in sorted(os.listdir(out)) if "data" in name] == ["model.onnx_data"]
    (out / "folder").mkdir()
    (out / "folder" / "notes.txt").write_text("mine too")
    assert call("export", "onnx", bert, out, "--no-check", "-q", "--no-external-data") == 0
    assert (out / "folder" / "notes.txt").read_text() == "mine too"
    assert os.listdir(tmp_path) == ["out"]


def test_two_exports_give_the_same_bytes(bert: str, tmp_path: Path) -> None:
    for name in ("one", "two"):
        assert call("export", "onnx", bert, tmp_path / name, "--no-check", "-q") == 0
    assert tree(tmp_path / "one") == tree(tmp_path / "two")


# --- what is refused --------------------------------------------------------------------------------------------------


def refused(capsys: Any, *args: object) -> str:
    """The message of a command that fails as the user's error, with a way out."""
    assert call(*args) == 2
    message = capsys.readouterr().err
    assert "way out" in message and "Traceback" not in message
    return message


def test_wrong_words_are_refused_with_those_that_are_known(bert: str, tmp_path: Path, capsys: Any) -> None:
    out = tmp_path / "out"
    assert "17 to" in refused(capsys, "export", "onnx", bert, out, "--opset", "5")
    assert "fill-mask" in refused(capsys, "export", "onnx", bert, out, "--task", "flying")
    assert "of type bert" in refused(capsys, "export", "onnx", bert, out, "--task", "image-classification")
    assert "OUT is missing" in refused(capsys, "export", "onnx", bert)
    assert call("export", "onnx", bert, out, "--shard-size", "many") == 2
    assert call("export", "onnx", bert, out, "--batch", "0") == 2
    assert call("fly") == 2
    assert list(tmp_path.iterdir()) == []


def test_folders_that_are_no_model_are_refused(bert: str, tmp_path: Path, capsys: Any) -> None:
    out = tmp_path / "out"
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "no config.json" in refused(capsys, "export", "onnx", empty, out)
    assert "no such folder" in refused(capsys, "export", "onnx", tmp_path / "none", out)
    shutil.copy(Path(bert) / "config.json", empty)
    assert "safetensors" in refused(capsys, "export", "onnx", empty, out)
    (empty / "config.json").write_text("[")
    assert "config.json" in refused(capsys, "export", "onnx", empty, out)
    assert not out.exists()


def test_a_pickle_is_refused_with_how_to_convert_it(bert: str, tmp_path: Path, capsys: Any) -> None:
    folder = tmp_path / "it's pickled; touch $(here)"
    folder.mkdir()
    shutil.copy(Path(bert) / "config.json", folder)
    torch.save({"weight": torch.ones(2)}, folder / "pytorch_model.bin")
    message = refused(capsys, "export", "onnx", folder, tmp_path / "out")
    assert "pickle" in message
    [way] = [line.split("way out")[1].strip() for line in message.splitlines() if "python -c" in line]
    python, *rest = shlex.split(way)
    assert python == "python"
    subprocess.run([sys.executable, *rest], check=True)
    assert (folder / "model.safetensors").exists()


def changed(bert: str, folder: Path, change: Any) -> Path:
    """A copy of the checkpoint with other tensors."""
    from safetensors.torch import load_file, save_file

    shutil.copytree(bert, folder)
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    return folder


def test_a_checkpoint_that_misses_tensors_or_has_other_shapes_is_refused(
    bert: str, tmp_path: Path, capsys: Any
) -> None:
    def change(tensors: dict[str, torch.Tensor]) -> None:
        del tensors["bert.encoder.layer.0.output.dense.bias"]
        tensors["bert.embeddings.LayerNorm.bias"] = torch.zeros(3)

    folder = changed(bert, tmp_path / "broken", change)
    message = refused(capsys, "export", "onnx", folder, tmp_path / "out")
    assert "missing bert.encoder.layer.0.output.dense.bias" in message
    assert "shape [3] in the checkpoint, [32] in the model" in message
    assert not (tmp_path / "out").exists()


def test_a_task_that_the_checkpoint_has_no_weights_for_is_refused(bert: str, tmp_path: Path, capsys: Any) -> None:
    message = refused(capsys, "export", "onnx", bert, tmp_path / "out", "--task", "text-classification")
    assert "missing classifier.weight" in message and "leave out --task" in message


def test_weights_too_large_for_a_type_are_named(bert: str, tmp_path: Path, capsys: Any) -> None:
    def change(tensors: dict[str, torch.Tensor]) -> None:
        tensors["bert.encoder.layer.0.output.dense.bias"][3] = 1e6

    folder = changed(bert, tmp_path / "large", change)
    assert call("export", "onnx", folder, tmp_path / "out", "--dtype", "fp16") == 0
    printed = capsys.readouterr()
    assert "infinite in bert.encoder.layer.0.output.dense.bias" in printed.err
    assert "NaN, as the model has" in printed.out


@pytest.mark.parametrize("out", ["out", "model.onnx"])  # all that generates, and the plain model
def test_weights_too_large_for_a_type_are_named_without_a_check(
    out: str, checkpoints: Path, tmp_path: Path, capsys: Any
) -> None:
    def change(tensors: dict[str, torch.Tensor]) -> None:
        tensors["model.layers.0.mlp.up_proj.weight"][0, :2] = 1e6

    folder = changed(str(checkpoints / "llama"), tmp_path / "large", change)
    assert call("export", "onnx", folder, tmp_path / out, "--dtype", "fp16", "--no-check") == 0
    said = capsys.readouterr().err
    assert "infinite in model.layers.0.mlp.up_proj.weight (2 of type f16); bf16 has room for them" in said


def test_a_cut_off_checkpoint_is_refused(bert: str, tmp_path: Path, capsys: Any) -> None:
    folder = tmp_path / "cut"
    shutil.copytree(bert, folder)
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:5000])
    assert "E0103" in refused(capsys, "export", "onnx", folder, tmp_path / "out")


def test_code_in_a_folder_runs_only_when_it_is_trusted(bert: str, tmp_path: Path, capsys: Any) -> None:
    folder = tmp_path / "own_code"
    shutil.copytree(bert, folder)
    config = json.loads((folder / "config.json").read_text())
    config |= {"architectures": ["MyBert"], "auto_map": {"AutoModelForMaskedLM": "mine.MyBert"}}
    (folder / "config.json").write_text(json.dumps(config))
    marker = tmp_path / "ran"
    (folder / "mine.py").write_text(
        f"open({str(marker)!r}, 'w').close()\nfrom transformers import BertForMaskedLM\n"
        "class MyBert(BertForMaskedLM):\n    pass\n"
    )
    assert "--trust-remote-code" in refused(capsys, "export", "onnx", folder, tmp_path / "out")
    assert not marker.exists()
    assert call("export", "onnx", folder, tmp_path / "out", "--trust-remote-code", "-q") == 0
    assert marker.exists() and (tmp_path / "out" / "model.onnx").exists()


def test_places_that_cannot_be_written_are_refused(bert: str, tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    (tmp_path / "folder.onnx").mkdir()
    assert "is a file" in refused(capsys, "export", "onnx", bert, file)
    assert "is a file" in refused(capsys, "export", "onnx", bert, file / "below")
    assert "is a folder" in refused(capsys, "export", "onnx", bert, tmp_path / "folder.onnx")
    assert "cannot write /proc" in refused(capsys, "export", "onnx", bert, "/proc/modelport/out")
    assert file.read_text() == "mine"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_refused(bert: str, tmp_path: Path, capsys: Any) -> None:
    folder = tmp_path / "closed"
    folder.mkdir(mode=0o500)
    assert "cannot be written" in refused(capsys, "export", "onnx", bert, folder / "out")


# --- inspect and help -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def exported(checkpoints: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("exported") / "bert"
    assert call("export", "onnx", checkpoints / "bert", out, "--no-check", "-q") == 0
    return out


def test_inspect_shows_what_the_file_has(exported: Path, bert: str, capsys: Any) -> None:
    import onnx

    assert call("inspect", exported, "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    model = onnx.load(exported / "model.onnx")
    assert [row["name"] for row in facts["inputs"]] == [value.name for value in model.graph.input]
    assert facts["inputs"][0]["shape"] == ["batch_size", "sequence_length"]
    assert facts["ranges"]["sequence_length"] == [1, 512]
    assert sum(facts["operators"].values()) == len(model.graph.node)
    assert facts["weights"]["count"] == len(model.graph.initializer)
    assert facts["weights"]["bytes"] == sum(onnx.numpy_helper.to_array(w).nbytes for w in model.graph.initializer)
    assert [file["state"] for file in facts["weights"]["files"]] == ["whole"]
    assert facts["source"] == bert
    assert call("inspect", exported / "model.onnx") == 0
    text = capsys.readouterr().out
    assert "input_ids: i64[batch_size, sequence_length]" in text and "sequence_length in 1..512" in text


NO_TORCH = """
import sys, time
started = time.perf_counter()
from modelport.cli import main
code = main(sys.argv[1:])
seconds = time.perf_counter() - started
assert "torch" not in sys.modules and "numpy" not in sys.modules and "transformers" not in sys.modules
print(seconds, file=sys.stderr)
sys.exit(code)
"""


def test_inspect_answers_at_once_without_torch(exported: Path) -> None:
    seconds = []
    for _ in range(3):  # the machine may be busy with something else
        command = [sys.executable, "-c", NO_TORCH, "inspect", str(exported)]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        seconds.append(float(done.stderr))
    assert min(seconds) < 0.3


def test_broken_files_are_refused_by_inspect_and_check(exported: Path, tmp_path: Path, capsys: Any) -> None:
    data = (exported / "model.onnx").read_bytes()
    for name, content in {"cut": data[:3000], "empty": b"", "text": b"<!DOCTYPE html>\n"}.items():
        file = tmp_path / f"{name}.onnx"
        file.write_bytes(content)
        assert "is no ONNX model" in refused(capsys, "inspect", file)
        assert "is no ONNX model" in refused(capsys, "check", file)
    assert "no such file" in refused(capsys, "inspect", tmp_path / "none.onnx")


def test_weights_that_are_not_there_are_named(exported: Path, tmp_path: Path, capsys: Any) -> None:
    shutil.copy(exported / "model.onnx", tmp_path)
    assert call("inspect", tmp_path) == 0
    assert "model.onnx_data: " in (text := capsys.readouterr().out) and "missing" in text
    assert "model.onnx_data is missing" in refused(capsys, "check", tmp_path)
    (tmp_path / "model.onnx_data").write_bytes(b"short")
    assert "too short" in refused(capsys, "check", tmp_path)


def test_errors_are_json_where_json_is_asked_for(tmp_path: Path, capsys: Any) -> None:
    assert call("inspect", tmp_path, "--json") == 2
    data = json.loads(capsys.readouterr().out)
    assert data["ok"] is False and data["errors"][0]["code"] == "E0103"


@pytest.mark.parametrize("command", [(), ("export", "onnx"), ("check",), ("inspect",)])
def test_every_help_shows_examples(command: tuple[str, ...], capsys: Any) -> None:
    assert call(*command, "--help") == 0
    assert "examples:\n  modelport " in capsys.readouterr().out
