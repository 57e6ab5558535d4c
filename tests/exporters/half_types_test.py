"""fp16: what torch computes in fp32 in between is computed so in the file, and does not become infinite."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

from modelport import OnnxConfig, OnnxExporter

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
