"""int8 for models that do not generate: products of integers, by the range of each call or by measured ranges."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_checkpoints
import torch
from onnx import numpy_helper

from modelport import (
    ExportError,
    InputObserver,
    OnnxConfig,
    OnnxExporter,
    OnnxRuntimeDynamicConfig,
    OnnxRuntimeQuantizer,
    OnnxRuntimeStaticConfig,
)
from modelport.artifacts.artifact import Artifact
from modelport.cli import main
from modelport.inputs import example_inputs


class Products(torch.nn.Module):
    """Two products of one input, with and without a bias, and an embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.words = torch.nn.Embedding(40, 32)
        self.one, self.two = torch.nn.Linear(32, 48), torch.nn.Linear(32, 48, bias=False)
        self.eval()

    def forward(self, ids: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        inputs = self.words(ids) + x
        return self.one(inputs) * self.two(inputs)


def inputs_of(size: float = 1.0, seed: int = 0) -> dict[str, torch.Tensor]:
    rng = torch.Generator().manual_seed(seed)
    return {"ids": torch.randint(0, 40, (2, 5), generator=rng), "x": size * torch.randn(2, 5, 32, generator=rng)}


def made() -> Products:
    torch.manual_seed(0)
    return Products()


def exported(model: Any, **config: Any) -> Any:
    return OnnxExporter().export(model, inputs_of(), OnnxConfig(dynamic=True, **config))


def error(program: Any, model: Any, given: dict[str, torch.Tensor]) -> float:
    got, want = program(**given)[0], model(**given).detach()
    return float((got - want).norm() / want.norm())


def operators(program: Any) -> dict[str, int]:
    names = [node.op_type for node in program.model_proto.graph.node]
    return {name: names.count(name) for name in names}


def test_inputs_are_rounded_once_by_the_range_of_the_call() -> None:
    model = made()
    program = exported(model, quantizer=OnnxRuntimeDynamicConfig())
    found = operators(program)
    assert (found["DynamicQuantizeLinear"], found["MatMulInteger"]) == (1, 2)
    for size in (0.01, 1, 100):
        assert 0 < error(program, model, inputs_of(size, 1)) < 0.02
    stored = {tensor.name: numpy_helper.to_array(tensor) for tensor in program.model_proto.graph.initializer}
    codes, scales = stored["two.weight.codes"], stored["two.weight.scales"]
    assert (codes.dtype, codes.shape, scales.shape) == (np.int8, (32, 48), (48,))
    np.testing.assert_allclose(codes * scales, model.two.weight.detach().numpy().T, atol=float(scales.max()))
    assert "words.weight" not in stored and stored["words.weight.codes"].shape == (40, 32)


@pytest.mark.parametrize("watched", [False, True])
def test_ranges_are_those_of_the_calibration(watched: bool) -> None:
    model = made()
    samples: Any = [inputs_of(10, seed) for seed in (2, 3)]
    if watched:
        observer = InputObserver()
        with observer(model):
            for sample in samples:
                model(**sample)
        samples = observer
    wide = exported(model, quantizer=OnnxRuntimeQuantizer(OnnxRuntimeStaticConfig(), samples))
    with pytest.warns(UserWarning, match="the example alone"):
        narrow = exported(model, quantization={"bits": 8, "form": "static"})
    found = operators(wide)
    assert found["QuantizeLinear"] == 1 and found["DequantizeLinear"] == 3 and found["MatMul"] == 2
    given = inputs_of(10, 2)
    assert error(wide, model, given) < 0.03 < 0.5 < error(narrow, model, given)
    assert error(narrow, model, inputs_of()) < 0.03


def test_the_configs_of_transformers_are_taken_too() -> None:
    from transformers.exporters import quantizers as theirs

    static = theirs.OnnxRuntimeQuantizer(theirs.OnnxRuntimeStaticConfig(per_channel=True), [inputs_of(2, 1)])
    for quantizer, form in ((theirs.OnnxRuntimeDynamicConfig(), "dynamic"), (static, "static")):
        assert OnnxConfig(quantizer=quantizer).quantization.form == form
    assert error(exported(made(), quantizer=static), made(), inputs_of()) < 0.03


@pytest.mark.parametrize(
    "quantizer",
    [
        OnnxRuntimeDynamicConfig(reduce_range=True),
        OnnxRuntimeStaticConfig(activation_type="QInt8"),
        OnnxRuntimeDynamicConfig(nodes_to_exclude=["a"]),
        object(),
    ],
)
def test_what_is_not_done_is_refused(quantizer: Any) -> None:
    with pytest.raises(ExportError, match=r"leave|OnnxRuntimeDynamicConfig"):
        OnnxConfig(quantizer=quantizer)


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("encoders")
    for name in ("bert", "vit"):
        tiny_checkpoints.save(name, folder)
    return folder


def call(*args: Any) -> int:
    return main([str(arg) for arg in args])


def test_an_encoder_in_8_bits_is_measured_by_its_direction(
    checkpoints: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert call("export", "onnx", checkpoints / "bert", out, "--dtype", "q8,fp32", "--json") == 0
    told = json.loads(capsys.readouterr().out)["types"]
    assert told["q8"]["check"]["min_cosine"] == 0.98 and told["fp32"]["check"]["min_cosine"] is None
    assert all(row["cosine"] > 0.98 for row in told["q8"]["check"]["rows"])
    assert "MatMulInteger" in Artifact(out / "model_quantized.onnx").summary["operators"]
    assert call("check", out) == 0 and "cosine from 0.98 on" in capsys.readouterr().out
    assert call("check", out, "--dtype", "q8", "--min-cosine", 1) == 2
    assert "--int8 blocks" in capsys.readouterr().err


def test_a_file_has_the_inputs_for_calibration(
    checkpoints: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pixels = example_inputs(tiny_checkpoints.MAKERS["vit"](), batch=12)["pixel_values"].numpy()
    np.savez(tmp_path / "pictures.npz", pixel_values=pixels)
    asked = ("--dtype", "int8", "--calibration", tmp_path / "pictures.npz")
    assert call("export", "onnx", checkpoints / "vit", tmp_path / "out", *asked, "-q") == 0
    assert "QuantizeLinear" in Artifact(tmp_path / "out/model.onnx").summary["operators"]
    np.savez(tmp_path / "pictures.npz", other=pixels)
    assert call("export", "onnx", checkpoints / "vit", tmp_path / "out", *asked) == 2
    assert "has no pixel_values" in capsys.readouterr().err


def test_levels_of_optimum_are_what_there_is(
    checkpoints: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("export", "onnx", checkpoints / "vit", tmp_path / "out", "--optimize", "O4", "--no-check") == 0
    assert "--optimize O4 is --operators onnxruntime --dtype fp16 here" in capsys.readouterr().err
    assert Artifact(tmp_path / "out/model.onnx").note("dtype") == "fp16"
