"""fp16: what torch computes in fp32 in between is computed so in the file, and does not become infinite; and no kernel
is used that is slow in this type."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from modelport import OnnxConfig, OnnxExporter
from modelport.artifacts.artifact import Artifact

LARGE = {
    "attention": lambda x: F.scaled_dot_product_attention(x[:, None], x[:, None], x[:, None]),
    "causal attention": lambda x: F.scaled_dot_product_attention(x[:, None], x[:, None], x[:, None], is_causal=True),
    "deviation": lambda x: x.std(-1),
    "variance": lambda x: (x / 16).var(-1),
    "root mean square": lambda x: F.rms_norm(x, x.shape[-1:]),
    "layer norm": lambda x: F.layer_norm(x, x.shape[-1:]),
    "norm": lambda x: F.normalize(x, dim=-1),
    "softplus": F.softplus,
}


class Called(torch.nn.Module):
    def __init__(self, function: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.function = function
        self.eval()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x)


@pytest.mark.parametrize("opset", [20, 23])
@pytest.mark.parametrize("name", LARGE)
def test_large_numbers_stay_numbers(name: str, opset: int) -> None:
    model = Called(LARGE[name])
    x = (1500 * torch.randn(2, 8, 64, generator=torch.Generator().manual_seed(0))).half()
    program = OnnxExporter().export(model, {"x": x}, OnnxConfig(dynamic=True, opset_version=opset))
    got, want = program(x=x)[0], model(x)
    assert got.dtype == torch.float16 and bool(want.isfinite().all()) and bool(got.isfinite().all())
    torch.testing.assert_close(got, want, atol=0.02, rtol=0.02)


class Tied(torch.nn.Module):
    """An embedding that is the head as well, and layers with biases on two axes and on three."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.layer = torch.nn.Embedding(97, 32), torch.nn.Linear(32, 32)
        self.eval()

    def forward(self, ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = self.layer(self.table(ids))
        return x @ self.table.weight.T, torch.addmm(self.layer.bias, self.layer(x[:, 0]), self.layer.weight)


@pytest.mark.parametrize("operators", ["standard", "onnxruntime"])
def test_products_are_matmul_whose_kernel_is_a_hundred_times_quicker_than_gemm(operators: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model, ids = Tied().half(), torch.arange(10).view(2, 5)
    program = OnnxExporter().export(model, {"ids": ids}, OnnxConfig(dynamic=True, operators=operators))
    for got, want in zip(program(ids=ids), model(ids), strict=True):
        torch.testing.assert_close(got, want, atol=0.02, rtol=0.02)
    program.save(tmp_path / "model.onnx")
    found = Artifact(tmp_path / "model.onnx").summary
    assert "Gemm" not in found["operators"] and found["operators"]["MatMul"] == 4
    assert [weight["shape"] for weight in found["weights"] if 97 in weight["shape"]] == [[97, 32]]
