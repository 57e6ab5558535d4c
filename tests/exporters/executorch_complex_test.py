"""Models that compute with complex numbers, or with spectra, as ExecuTorch programs at several sizes."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import modelport

pytest.importorskip("executorch")


class Filter(torch.nn.Module):
    """A signal without the upper part of its spectrum, as models of time series have it."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        spectrum = torch.fft.rfft(x, dim=1)
        keep = torch.arange(spectrum.shape[1])[:, None] < 3
        return torch.fft.irfft(spectrum * keep, n=x.shape[1], dim=1)


class Mixing(torch.nn.Module):
    """Both axes, as FNet mixes tokens."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.fft.fftn(x, dim=(1, 2)).real


class Turned(torch.nn.Module):
    """Pairs of features turned by the angle of their position."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        angles = torch.outer(torch.arange(x.shape[1]).float(), torch.tensor([1.0, 0.1]))
        turns = torch.polar(torch.ones_like(angles), angles)
        pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
        return torch.view_as_real(pairs * turns[None]).flatten(2)


@pytest.mark.parametrize("recipe", ["portable", "xnnpack"])
@pytest.mark.parametrize("model", [Filter(), Mixing(), Turned()], ids=lambda model: type(model).__name__)
def test_values_are_those_of_the_model(model: Any, recipe: str) -> None:
    example = torch.randn(2, 7, 4, generator=torch.Generator().manual_seed(0))
    shapes = {"x": {1: "seq"}}
    config = {"dynamic_shapes": shapes, "recipe": recipe, "dims": {"seq": (4, 16)}}
    program = modelport.ExecutorchExporter().export(model.eval(), {"x": example}, config)
    for length in (7, 12, 5):
        x = torch.randn(2, length, 4, generator=torch.Generator().manual_seed(length))
        torch.testing.assert_close(program(x=x), model(x), atol=1e-4, rtol=1e-4)
