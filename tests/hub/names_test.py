"""Names of the hub in the place of folders: what is fetched, what comes from the cache, what is refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import tiny_checkpoints
import torch
from local_hub import COMMIT, TOKEN, LocalHub
from safetensors.torch import save_file

import modelport
from modelport import ExportError
from modelport.artifacts.artifact import Artifact
from modelport.cli import main
from modelport.hub import files
from modelport.hub.folder import checkpoint_folder
from modelport.hub.name import hub_name

EXPORT = ("export", "onnx", "--no-check", "-q")


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As repositories are: the weights several times, and code."""
    folder = tiny_checkpoints.save("bert", tmp_path_factory.mktemp("checkpoints"))
    (folder / "original").mkdir()
    for other in ("pytorch_model.bin", "flax_model.msgpack", "model.fp16.safetensors", "original/consolidated.00.pth"):
        (folder / other).write_bytes(b"the weights once more")
    (folder / "model.onnx").write_bytes(b"an export")
    (folder / "modeling_own.py").write_text("raise SystemExit('code of a stranger')")
    (folder / "README.md").write_text("# Bert")
    return folder


def call(*args: object) -> int:
    return main([str(arg) for arg in args])


def refusal(text: str, **settings: Any) -> ExportError:
    with pytest.raises(ExportError) as refused:
        checkpoint_folder(text, **settings)
    assert refused.value.diagnostics[0]["ways_out"]
    return refused.value


# --- what is a name ---------------------------------------------------------------------------------------------------


def test_a_name_is_what_the_hub_calls_so() -> None:
    assert hub_name("org/name-1.5_b") == ("org/name-1.5_b", None)
    assert hub_name("gpt2@refs/pr/3") == ("gpt2", "refs/pr/3")
    assert hub_name("org/name", "v1") == ("org/name", "v1")
    for path in (
        "./org/name",
        "/org/name",
        "~/name",
        "a/b/c",
        "org/",
        "model.onnx",
        "org/a..b",
        "my model",
        "org/a--b",
    ):
        assert hub_name(path) is None, path
    assert hub_name(Path("org/name")) is None


def test_a_folder_that_is_here_comes_before_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "org" / "name").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert checkpoint_folder("org/name") == Path("org/name")
    assert refusal("org/name", revision="v1").code == "E0306"


# --- what is fetched --------------------------------------------------------------------------------------------------


def test_an_export_of_a_name_fetches_what_it_needs_and_no_more(
    hub: LocalHub, bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.add_folder("org/bert", bert)
    out = tmp_path / "out"
    assert call("export", "onnx", "org/bert", out, "-q") == 0
    names = {path.removeprefix("org/bert/") for path in hub.sent}
    assert names == {"config.json", "model.safetensors", "tokenizer_config.json"}
    assert sorted(os.listdir(out)) == [
        ".modelport.json", "config.json", "model.onnx", "model.onnx_data", "tokenizer_config.json",
    ]  # fmt: skip
    assert Artifact(out / "model.onnx").note("hub") == f"org/bert@{COMMIT}"
    assert call("check", out, "-q") == 0
    assert call("check", out, "--model", "org/bert", "--revision", "main", "-q") == 0

    # From the cache, without a connection and without one being tried.
    before = dict(hub.sent)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    hub.models.clear()
    assert call(*EXPORT, "org/bert", tmp_path / "again") == 0
    assert hub.sent == before
    assert (tmp_path / "again" / "model.onnx_data").read_bytes() == (out / "model.onnx_data").read_bytes()


def test_a_check_fetches_the_model_that_an_export_came_from_where_its_folder_is_gone(
    hub: LocalHub, bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.add_folder("org/bert", bert)
    assert call(*EXPORT, "org/bert", tmp_path / "out") == 0
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "another cache"))
    os.rename(tmp_path / "cache", tmp_path / "gone")
    assert modelport.check(tmp_path / "out").ok


def test_weights_can_be_linked_into_the_cache(hub: LocalHub, bert: Path, tmp_path: Path) -> None:
    hub.add_folder("org/bert", bert)
    assert call("export", "onnx", "org/bert", tmp_path / "out", "--weights", "link", "-q") == 0
    assert (tmp_path / "out" / "model.onnx_data").samefile(checkpoint_folder("org/bert") / "model.safetensors")


def test_python_code_is_fetched_only_where_it_is_trusted(hub: LocalHub, bert: Path) -> None:
    hub.add_folder("org/bert", bert)
    assert not (checkpoint_folder("org/bert") / "modeling_own.py").exists()
    assert (checkpoint_folder("org/bert", code=True) / "modeling_own.py").exists()


def test_shards_are_those_that_the_index_names() -> None:
    known = ["model-1.safetensors", "model-2.safetensors", "other.safetensors", files.INDEX, "a/b.safetensors"]
    index = {"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors", "c": "../x.safetensors", "d": 3}}
    assert files.weights(known, index) == ["model-1.safetensors", "model-2.safetensors"]
    assert files.weights([*known, files.SINGLE], None) == [files.SINGLE]


def test_of_an_openvino_export_its_models_are_needed_and_onnx_goes_first() -> None:
    known = ["config.json", "model.safetensors", "openvino_model.bin", "openvino_model.xml", "other.xml"]
    assert files.exported(known) == ["openvino_model.bin", "openvino_model.xml"]
    assert files.exported([*known, "model.onnx"]) == ["model.onnx"]


def test_modules_of_sentence_transformers_are_fetched_with_their_weights() -> None:
    known = [
        files.MODULES,
        "config.json",
        "1_Pooling/config.json",
        "2_Dense/model.safetensors",
        "2_Dense/pytorch_model.bin",
    ]
    assert files.settings([*known, "onnx/config.json", "1_Pooling/x/config.json"], code=False) == known[:-1]
    assert files.settings(known[1:], code=False) == ["config.json"]


def test_a_private_model_is_read_with_the_usual_token(
    hub: LocalHub, bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.add_folder("org/private", bert, needs="token")
    error = refusal("org/private")
    assert error.code == "E0316" and "HF_TOKEN" in str(error)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    assert (checkpoint_folder("org/private") / "model.safetensors").is_file()


def test_an_export_that_lies_on_the_hub_is_loaded_by_its_name(hub: LocalHub, bert: Path, tmp_path: Path) -> None:
    assert call(*EXPORT, bert, tmp_path / "out") == 0
    hub.add_folder("org/bert-onnx", tmp_path / "out")
    inputs = {"input_ids": torch.tensor([[7, 8, 9]]), "attention_mask": torch.ones(1, 3, dtype=torch.int64)}
    inputs["token_type_ids"] = torch.zeros(1, 3, dtype=torch.int64)
    ours, there = modelport.load(tmp_path / "out")(**inputs), modelport.load("org/bert-onnx")(**inputs)
    assert torch.equal(ours["logits"], there["logits"])


# --- what is refused --------------------------------------------------------------------------------------------------


def test_an_unknown_name_and_a_mistyped_folder_are_told_apart_from_others(
    hub: LocalHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = refusal("org/none")
    assert error.code == "E0316" and "org/none is no folder here" in str(error)
    (tmp_path / "bert-base").mkdir()
    monkeypatch.chdir(tmp_path)
    assert "there is a folder bert-base" in str(refusal("bert-bsae"))
    error = refusal(f"{tmp_path}/bert-bas")
    assert error.code == "E0103" and "no such folder" in str(error) and "bert-base" in str(error)
    assert refusal("my model").code == "E0316"


def test_a_revision_that_is_not_there_is_refused(hub: LocalHub, bert: Path) -> None:
    hub.add_folder("org/bert", bert)
    error = refusal("org/bert", revision="v9")
    assert error.code == "E0316" and "no revision v9" in str(error)
    assert "no revision v9" in str(refusal("org/bert@v9"))
    assert refusal("org/bert@v9", revision="v8").code == "E0306"


def test_terms_that_nobody_accepted_are_named(hub: LocalHub, bert: Path) -> None:
    hub.add_folder("org/gated", bert, needs="terms")
    error = refusal("org/gated")
    assert error.code == "E0316" and "accept the terms at https://huggingface.co/org/gated" in str(error)


def test_without_a_connection_the_cache_is_named(hub: LocalHub, bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.add_folder("org/bert", bert)
    hub.add_folder("org/other", bert)
    checkpoint_folder("org/bert")
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")  # where nobody listens
    assert (checkpoint_folder("org/bert") / "model.safetensors").is_file()
    error = refusal("org/other")
    assert error.code == "E0317" and "was not reached" in str(error) and "hf download org/other" in str(error)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert "HF_HUB_OFFLINE is set" in str(refusal("org/other"))
    os.unlink(checkpoint_folder("org/bert") / "model.safetensors")
    assert "its weights of org/bert" in str(refusal("org/bert"))


def test_weights_in_other_forms_alone_are_refused(hub: LocalHub, bert: Path) -> None:
    model = hub.add_folder("org/bert", bert)
    del model.files["model.safetensors"]
    error = refusal("org/bert")
    assert error.code == "E0103" and "pytorch_model.bin" in str(error)
    assert not any(path.endswith(".bin") for path in hub.sent)
    del model.files["config.json"]
    assert "no config.json" in str(refusal("org/bert"))


def test_the_environment_says_where_the_hub_is(hub: LocalHub, bert: Path, tmp_path: Path) -> None:
    hub.add_folder("org/bert", bert)
    env = os.environ | {"HF_ENDPOINT": hub.endpoint, "HF_HOME": str(tmp_path / "home"), "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, "-m", "modelport", "inspect", "org/bert", "--json"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    row = json.loads(done.stdout)
    assert row["class"] == "BertForMaskedLM" and row["commit"] == COMMIT and row["weights"]["count"] > 10
    assert hub.sent["org/bert/model.safetensors"] <= 65536
    assert not list((tmp_path / "home").rglob("open/*"))


def test_an_adapter_and_its_base_are_both_fetched_by_their_names(
    hub: LocalHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tiny_models import tiny

    model = tiny("llama", hidden_size=256, intermediate_size=1024)
    model.save_pretrained(tmp_path / "base")
    hub.add_folder("org/base", tmp_path / "base")
    q = "base_model.model.model.layers.0.self_attn.q_proj.lora_"
    halves = {f"{q}A.weight": torch.randn(2, 256), f"{q}B.weight": torch.randn(256, 2)}
    settings = {"peft_type": "LORA", "base_model_name_or_path": "org/base", "r": 2, "lora_alpha": 2}
    (tmp_path / "adapter").mkdir()
    save_file(halves, tmp_path / "adapter" / "adapter_model.safetensors")
    (tmp_path / "adapter" / "adapter_config.json").write_text(json.dumps(settings))
    hub.add_folder("org/adapter", tmp_path / "adapter")
    inputs = {"input_ids": torch.arange(5, 12)[None]}
    captured = modelport.capture("org/adapter", inputs)
    assert hub.sent["org/base/model.safetensors"] <= 65536
    with torch.no_grad():
        model.model.layers[0].self_attn.q_proj.weight += halves[f"{q}B.weight"] @ halves[f"{q}A.weight"]
    torch.testing.assert_close(captured.run(**inputs).logits, model(**inputs).logits, atol=1e-4, rtol=1e-3)
    assert call(*EXPORT, "org/adapter", tmp_path / "out") == 0
