"""Masks of attention: those that hide nothing are left out of the graph, all others stay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from tiny_models import tiny
from torch.nn.functional import scaled_dot_product_attention

import modelport


class Attention(torch.nn.Module):
    def __init__(self, mask: Callable[[torch.Tensor], torch.Tensor]):
        super().__init__()
        self.mask = mask
        self.register_buffer("all", torch.ones(5, 5, dtype=torch.bool))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return scaled_dot_product_attention(x, x, x, attn_mask=self.mask(x))


def written_to(x: torch.Tensor) -> torch.Tensor:
    mask = torch.ones(5, 5, dtype=torch.bool)
    mask[:, 0] = False
    return mask


def seen_by_itself_alone(x: torch.Tensor) -> torch.Tensor:
    return torch.eye(5, dtype=torch.bool)


def constant(x: torch.Tensor) -> torch.Tensor:
    return torch.ones(5, 5, dtype=torch.bool)


def of_places(x: torch.Tensor) -> torch.Tensor:
    places = torch.arange(x.shape[-2])
    return (places[:, None] >= 0) & (places[None, :] + 1 > 0)


def up_to_its_place(x: torch.Tensor) -> torch.Tensor:
    places = torch.arange(x.shape[-2])
    return places[:, None] >= places[None, :]


def added(x: torch.Tensor) -> torch.Tensor:
    return torch.ones(5, 5)


def captured_with(mask: Callable[[torch.Tensor], torch.Tensor], sizes: tuple[int, ...]) -> tuple[Any, bool]:
    model, x = Attention(mask).eval(), torch.randn(sizes)
    captured = modelport.capture(model, {"x": x}, dynamic=True)
    torch.testing.assert_close(captured.run(x=x), model(x))
    return captured, "attn_mask=" in str(captured)


@pytest.mark.parametrize("mask", [constant, of_places])
def test_a_mask_that_hides_nothing_is_left_out(mask: Callable[[torch.Tensor], torch.Tensor]) -> None:
    captured, masked = captured_with(mask, (2, 3, 5, 4))
    assert not masked
    other = torch.randn(7, 3, 5, 4)
    torch.testing.assert_close(captured.run(x=other), Attention(mask)(other))


@pytest.mark.parametrize("mask", [written_to, seen_by_itself_alone, up_to_its_place, added])
def test_a_mask_that_hides_or_adds_something_stays(mask: Callable[[torch.Tensor], torch.Tensor]) -> None:
    assert captured_with(mask, (2, 3, 5, 4))[1]


def test_a_buffer_stays_whatever_it_holds_now() -> None:
    model = Attention(of_places).eval()
    model.mask = lambda x: model.all
    captured = modelport.capture(model, {"x": torch.randn(2, 3, 5, 4)}, dynamic=True)
    assert "attn_mask=@all" in str(captured)


@pytest.mark.parametrize("name", ["vit", "bert"])
def test_encoders_without_a_mask_have_none(name: str) -> None:
    model = tiny(name)
    inputs = {
        "vit": {"pixel_values": torch.randn(2, 3, 32, 32)},
        "bert": {"input_ids": torch.arange(10).view(2, 5)},
    }[name]
    captured = modelport.capture(model, inputs, dynamic=True)
    assert "scaled_dot_product_attention(" in str(captured) and "attn_mask=" not in str(captured)
