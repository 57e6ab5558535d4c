"""`modelport run --inputs FILE`: any model, called with the tensors of a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_generators import DECODERS, export_decoder, made
from tiny_models import tiny

from modelport import OnnxConfig, OnnxExporter
from modelport.cli import main

PIXELS = torch.linspace(-1, 1, 2 * 3 * 32 * 32).reshape(2, 3, 32, 32)


@pytest.fixture(scope="module")
def vit(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    model, folder = tiny("vit"), tmp_path_factory.mktemp("vit")
    program = OnnxExporter().export(model, {"pixel_values": PIXELS}, OnnxConfig(dynamic=True))
    return model, program.save(folder / "model.onnx")


def test_what_a_model_gives_is_told_and_kept(vit: tuple[Any, Path], tmp_path: Path, capsys: Any) -> None:
    model, file = vit
    save_file({"pixel_values": PIXELS}, tmp_path / "in.safetensors")
    with torch.no_grad():
        want = model(PIXELS).logits
    for kept in ("out.safetensors", "out.npz"):
        command = ["run", str(file), "--inputs", str(tmp_path / "in.safetensors"), "--outputs", str(tmp_path / kept)]
        assert main([*command, "--json"]) == 0
        told = json.loads(capsys.readouterr().out)["outputs"]["logits"]
        assert told["shape"] == [2, 2] and told["max"] == pytest.approx(float(want.max()), abs=1e-5)
    torch.testing.assert_close(load_file(tmp_path / "out.safetensors")["logits"], want, atol=1e-5, rtol=1e-5)
    assert main(command) == 0
    assert capsys.readouterr().out.startswith("logits: float32[2, 2]  ")


def test_a_model_that_generates_goes_on_from_the_tokens_of_each_row(tmp_path: Path, capsys: Any) -> None:
    model = made(DECODERS["llama"])
    folder = export_decoder(model, tmp_path / "llama")
    ids = torch.arange(5, 17).reshape(2, 6)
    save_file({"input_ids": ids}, tmp_path / "in.safetensors")
    wanted = model.generate(ids, max_new_tokens=4, do_sample=False)[:, 6:]
    given = ["--inputs", str(tmp_path / "in.safetensors"), "--max-new-tokens", "4", "--temperature", "0"]
    assert main(["run", str(folder), *given]) == 0
    assert capsys.readouterr().out == "".join(" ".join(map(str, row)) + "\n" for row in wanted.tolist())
    assert main(["run", str(folder), *given, "--outputs", str(tmp_path / "out.npz")]) == 2
    assert "gives tokens" in capsys.readouterr().err


def test_inputs_and_a_prompt_do_not_go_together(vit: tuple[Any, Path], tmp_path: Path, capsys: Any) -> None:
    save_file({"pixels": PIXELS}, tmp_path / "in.safetensors")
    given = ["--inputs", str(tmp_path / "in.safetensors")]
    for wrong, why in (
        (["a cat", *given], "there is a prompt too"),
        (["--outputs", "out.npz"], "--inputs FILE"),
        ([*given, "--outputs", "out.txt"], "no kind of file"),
        (given, "needs pixel_values and does not take pixels"),
    ):
        assert main(["run", str(vit[1]), *wrong]) == 2
        assert why in capsys.readouterr().err
