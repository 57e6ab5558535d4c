"""`modelport export onnx --dtype q4,fp16`: several types in one folder, each found by the ends of its files' names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import tiny_checkpoints
import torch

import modelport
from modelport import ExportError, OnnxConfig, OnnxExporter
from modelport.artifacts.artifact import Artifact
from modelport.cli import main


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_checkpoints.save("llama", tmp_path_factory.mktemp("several"))


def call(*args: Any) -> int:
    return main([str(arg) for arg in args])


def graphs(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*.onnx")}


def test_every_type_is_written_loaded_and_checked(
    llama: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert (
        call("export", "onnx", llama, out, "--dtype", "int4,fp16,q4f16", "--max-perplexity-growth", 99, "--json") == 0
    )
    told = json.loads(capsys.readouterr().out)
    assert list(told["types"]) == ["q4", "fp16", "q4f16"]
    assert "perplexity" in told["types"]["q4"]["check"] and "rows" in told["types"]["fp16"]["check"]
    assert graphs(out) == {"model_q4.onnx", "model_fp16.onnx", "model_q4f16.onnx"}
    logits = {
        dtype: modelport.load(out, dtype=dtype)(input_ids=torch.tensor([[5, 6, 7]])).logits for dtype in told["types"]
    }
    assert {dtype: value.dtype for dtype, value in logits.items()} == {
        "q4": torch.float32,
        "fp16": torch.float16,
        "q4f16": torch.float16,
    }
    assert not torch.equal(logits["fp16"], logits["q4f16"]) and bool(logits["q4f16"].isfinite().all())
    assert modelport.load(out)(input_ids=torch.tensor([[5]])).logits.dtype == torch.float16  # the most exact
    assert call("check", out, "--max-perplexity-growth", 99, "--json") == 0
    assert set(json.loads(capsys.readouterr().out)["types"]) == {"q4", "fp16", "q4f16"}
    assert call("check", out, "--dtype", "q4", "--max-perplexity-growth", -99, "-q") == 2
    with pytest.raises(ExportError, match="it has: fp16, q4, q4f16"):
        modelport.load(out, dtype="q8")


def test_another_export_takes_the_place_of_every_type(llama: Path, tmp_path: Path) -> None:
    for asked, want in (("q4,fp32", {"model.onnx", "model_q4.onnx"}), ("q8", {"model.onnx"})):
        assert call("export", "onnx", llama, tmp_path / "out", "--dtype", asked, "--no-check", "-q") == 0
        assert graphs(tmp_path / "out") == want


def test_a_client_finds_a_type_by_its_name(llama: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert call("export", "onnx", llama, out, "--dtype", "int8", "--for", "transformers.js", "--no-check", "-q") == 0
    assert graphs(out) == {"onnx/model_quantized.onnx"}
    said = json.loads((out / "config.json").read_text())["transformers.js_config"]
    assert said == {"dtype": "q8", "use_external_data_format": {"model_quantized.onnx": 1}}
    operators = Artifact(out / "onnx/model_quantized.onnx").summary["operators"]
    assert "com.microsoft.GatherBlockQuantized" not in operators  # which browsers do not have
    assert modelport.load(out).generate(torch.tensor([[5, 6]]), max_new_tokens=2).shape == (1, 4)


@pytest.mark.parametrize(
    ("more", "out", "says"),
    [
        (["--dtype", "q4,int3"], "out", "int3 is no type"),
        (["--dtype", "q4,fp16"], "out.onnx", "name a folder"),
        (["--dtype", "q4,fp16", "--for", "genai"], "out", "one folder for each type"),
    ],
)
def test_what_cannot_be_is_refused(
    more: list[str], out: str, says: str, llama: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("export", "onnx", llama, tmp_path / out, *more) == 2
    assert says in capsys.readouterr().err


def test_a_capture_serves_every_type_of_the_same_floats(llama: Path) -> None:
    config = OnnxConfig(dtype="q4")
    parts = OnnxExporter().export_for_generation(llama, {"input_ids": torch.tensor([[5, 6, 7]])}, config)
    again = parts.lowered_again(quantization=None)
    assert again["model"].captured is parts["model"].captured
    assert "MatMulNBits" in str(parts["model"]) and "MatMulNBits" not in str(again["model"])


def test_a_model_in_memory_is_exported_in_its_own_type() -> None:
    model = tiny_checkpoints.MAKERS["llama"]()
    with pytest.raises(ExportError, match=r"model\.to"):
        OnnxExporter().export_for_generation(model, {"input_ids": torch.tensor([[5]])}, OnnxConfig(dtype="fp16"))
