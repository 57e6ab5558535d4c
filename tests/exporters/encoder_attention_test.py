"""Attention of encoders on heads that lie side by side, and their layer norms: the values of standard operators, at
sizes that were not exported."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import onnxruntime
import pytest
import torch
import transformers as t

from modelport import OnnxConfig, OnnxExporter, OnnxRuntimeDynamicConfig

SMALL: dict[str, Any] = {
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 96,
}


class Across(torch.nn.Module):
    """Attention of one sequence on another, with values of another width than keys."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = (torch.nn.Linear(24, width) for width in (32, 32, 48))

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        heads = [each.unflatten(-1, (4, -1)).transpose(1, 2) for each in (self.query(x), self.key(y), self.value(y))]
        attended = torch.nn.functional.scaled_dot_product_attention(*heads, scale=0.3)
        return attended.transpose(1, 2).flatten(2)


class Sharing(torch.nn.Module):
    """Causal attention in which two heads share keys and values, narrower ones than the keys."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = (torch.nn.Linear(24, width) for width in (32, 16, 12))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        counts = ((self.query, 4), (self.key, 2), (self.value, 2))
        heads = [make(x).unflatten(-1, (count, -1)).transpose(1, 2) for make, count in counts]
        attended = torch.nn.functional.scaled_dot_product_attention(*heads, is_causal=True, enable_gqa=True)
        return attended.transpose(1, 2).flatten(2)


def vit() -> Any:
    return t.ViTModel(t.ViTConfig(**SMALL, image_size=32, patch_size=8))


def whisper() -> Any:
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    sizes = {"d_model": 64, "encoder_layers": 2, "encoder_attention_heads": 4, "encoder_ffn_dim": 96}
    return WhisperEncoder(t.WhisperConfig(**sizes, max_source_positions=800))


def bert() -> Any:
    return t.BertModel(t.BertConfig(**SMALL, vocab_size=50))


def normal(name: str, *sizes: int) -> Callable[[int], dict[str, torch.Tensor]]:
    return lambda batch: {name: torch.randn(batch, *sizes, generator=torch.Generator().manual_seed(batch))}


def two_lengths(batch: int) -> dict[str, torch.Tensor]:
    return normal("x", 2 + batch, 24)(batch) | normal("y", 3 * batch, 24)(batch)


def one_length(batch: int) -> dict[str, torch.Tensor]:
    return normal("x", 2 + batch, 24)(batch)


def padded(batch: int) -> dict[str, torch.Tensor]:
    ids = torch.arange(batch * 7).view(batch, 7) % 50
    mask = (torch.arange(7) < 7 - torch.arange(batch)[:, None]).long()
    mask[-1] = 0  # a row of padding alone
    return {"input_ids": ids, "attention_mask": mask}


OWN = "MultiHeadAttention"
# How to make the model and its inputs, and the attention that the file has then.
ENCODERS: dict[str, tuple[Callable[[], Any], Callable[[int], dict[str, torch.Tensor]], list[str]]] = {
    "vit, whose mask hides nothing": (vit, normal("pixel_values", 3, 32, 32), ["Attention"] * 2),
    "whisper": (whisper, normal("input_features", 80, 1600), [OWN] * 2),
    "across, of any lengths": (Across, two_lengths, [OWN]),
    "sharing keys": (Sharing, one_length, ["Attention"]),
    "bert, which has a mask": (bert, padded, ["Attention"] * 2),
}


def exported(name: str, **settings: Any) -> tuple[Any, Any]:
    make, inputs, _ = ENCODERS[name]
    torch.manual_seed(0)
    model = make().eval()
    return model, OnnxExporter().export(model, inputs(2), OnnxConfig(**{"dynamic": True, **settings}))


def operators(program: Any) -> list[str]:
    return [node.op_type for node in program.model_proto.graph.node]


def attentions(program: Any) -> list[str]:
    return [name for name in operators(program) if name in ("Attention", OWN)]


@pytest.mark.parametrize("name", ENCODERS)
def test_it_gives_the_values_of_standard_operators(name: str) -> None:
    _, inputs, wanted = ENCODERS[name]
    standard, own = (exported(name, operators=which)[1] for which in ("standard", "onnxruntime"))
    assert attentions(standard) == ["Attention"] * len(wanted) and attentions(own) == wanted
    assert operators(own).count("Transpose") == operators(standard).count("Transpose") - 4 * len(wanted)
    assert ("attention on heads side by side", "") in {(fusion, why) for fusion, why, _ in own.graph.fusions()}
    for batch in (1, 2, 5):
        given = inputs(batch)
        torch.testing.assert_close(own(**given)[0], standard(**given)[0], atol=2e-6, rtol=1e-5)


def test_products_of_integers_keep_it() -> None:
    model, program = exported("whisper", operators="onnxruntime", quantizer=OnnxRuntimeDynamicConfig())
    assert attentions(program) == [OWN] * 2
    given = normal("input_features", 80, 1600)(3)
    got, want = program(**given)[0], model(**given)[0].detach()
    assert torch.cosine_similarity(got.flatten(), want.flatten(), 0) > 0.99


def test_a_row_of_padding_alone_gives_what_the_model_gives() -> None:
    """onnxruntime's own operator would attend to all of it, ONNX's does not."""
    model, program = exported("bert, which has a mask", operators="onnxruntime")
    for batch in (2, 5):
        given = padded(batch)
        torch.testing.assert_close(program(**given)[0], model(**given)[0].detach(), atol=1e-5, rtol=1e-5)


def run_operators(program: Any, tmp_path: Path) -> list[str]:
    """What onnxruntime runs, as it has the file once it is loaded."""
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "loaded.onnx")
    options.log_severity_level = 3
    onnxruntime.InferenceSession(program.to_bytes(), options)
    return [node.op_type for node in onnx.load(tmp_path / "loaded.onnx").graph.node]


@pytest.mark.parametrize("name", ["bert, which has a mask", "vit, whose mask hides nothing"])
def test_onnxruntime_does_not_join_a_sum_and_its_layer_norm(name: str, tmp_path: Path) -> None:
    """Its kernel for both takes longer than the two. Files of standard operators show that it would, where sizes are
    known."""
    given = ENCODERS[name][1](2)
    model, program = exported(name, operators="onnxruntime", dynamic=False)
    found = run_operators(program, tmp_path)
    assert "SkipLayerNormalization" not in found and found.count("LayerNormalization") >= 4
    torch.testing.assert_close(program(**given)[0], model(**given)[0].detach(), atol=1e-5, rtol=1e-7)
    _, standard = exported(name, dynamic=False)
    assert "SkipLayerNormalization" in run_operators(standard, tmp_path)
