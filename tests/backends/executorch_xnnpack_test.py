"""Programs in which XNNPACK computes what it can, in ExecuTorch's runtime: values, sizes, weights in fewer bits."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from tiny_models import tiny

import modelport
from modelport.artifacts.pte import read_program
from modelport.base import core

pytest.importorskip("executorch")

from dequantized_models import LINEAR, with_dequantized_weights
from executorch_parity import Parity, lower_to_xnnpack

CELLS = [name for name in core.op_names() if core._modelport.has_xnnpack_cell(name)]


@pytest.fixture(scope="module")
def parity() -> Iterator[Parity]:
    parity = Parity(lower_to_xnnpack)
    yield parity
    parity.close()


@pytest.mark.parametrize("op", CELLS)
def test_xnnpack_agrees_with_pytorch_on_every_sample(parity: Parity, op: str) -> None:
    assert parity.check(op).wrong == []


def qwen3(**config: Any) -> Any:
    sizes = {"hidden_size": 64, "head_dim": 16, "intermediate_size": 128, "vocab_size": 256}
    return tiny("qwen3", **{**sizes, "max_position_embeddings": 128, **config})


def bert() -> Any:
    return tiny("bert", max_position_embeddings=64)


def tokens(batch: int, length: int) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(length)
    return {
        "input_ids": torch.randint(0, 99, (batch, length), generator=generator),
        "attention_mask": torch.ones(batch, length, dtype=torch.long),
    }


def padded(batch: int, length: int) -> dict[str, Any]:
    """The last sample is two tokens shorter."""
    inputs = tokens(batch, length)
    inputs["attention_mask"][-1, -2:] = 0
    return inputs


def images(batch: int, size: int) -> dict[str, Any]:
    return {"pixel_values": torch.randn(batch, 3, size, size, generator=torch.Generator().manual_seed(batch))}


def exported(model: Any, inputs: dict[str, Any], **config: Any) -> Any:
    return modelport.ExecutorchExporter().export(model, inputs, modelport.ExecutorchConfig(recipe="xnnpack", **config))


def off_by(program: Any, model: Any, inputs: dict[str, Any]) -> float:
    """The largest distance of an output from the model's, relative to its norm."""
    with torch.no_grad():
        found, wanted = program(**inputs), model(**inputs)
    assert list(found) == list(wanted)
    pairs = [(a, b) for a, b in zip(found.to_tuple(), wanted.to_tuple(), strict=True) if isinstance(a, torch.Tensor)]
    assert all(a.shape == b.shape for a, b in pairs)
    return max(((a - b).norm() / b.norm()).item() for a, b in pairs)


def delegates(program: Any, folder: Path) -> list[int]:
    """How many nodes each delegate has."""
    program.save(folder / "model.pte")
    methods = read_program(folder / "model.pte")["methods"]
    return [nodes for _, _, nodes in methods["forward"]["delegates"]]


def test_layers_of_a_decoder_are_one_delegate_for_every_length(tmp_path: Path) -> None:
    model = qwen3()
    inputs = {"input_ids": tokens(1, 7)["input_ids"], "use_cache": False}
    program = exported(model, inputs, dynamic_shapes={"input_ids": {1: "seq"}})
    for length in (7, 1, 64, 128):
        assert off_by(program, model, inputs | {"input_ids": tokens(1, length)["input_ids"]}) < 1e-5
    assert len(delegates(program, tmp_path)) == 1
    assert "aten.embedding not in XNNPACK: XNNPACK has no node for it" in program.report()


def test_an_encoder_takes_any_batch_and_length(tmp_path: Path) -> None:
    model = bert()
    program = exported(model, padded(2, 7), dynamic=True)
    for size in ((2, 7), (1, 3), (8, 64)):
        assert off_by(program, model, padded(*size)) < 1e-5
    # Two sizes are open: views between projections and attention are outside, and cost nothing.
    assert len(delegates(program, tmp_path)) <= 5
    assert "permute_copy" not in str(program)


def test_a_query_that_sees_nothing_gets_what_the_model_gives() -> None:
    model = bert()
    program = exported(model, padded(2, 7), dynamic=True)
    inputs = tokens(2, 5)
    inputs["attention_mask"][1] = 0
    assert off_by(program, model, inputs) < 1e-5


def test_a_vision_transformer_takes_any_batch(tmp_path: Path) -> None:
    model = tiny("vit", image_size=16, patch_size=4)
    program = exported(model, images(2, 16), dynamic_shapes={"pixel_values": {0: "batch"}})
    for batch in (2, 1, 5):
        assert off_by(program, model, images(batch, 16)) < 1e-5
    assert len(delegates(program, tmp_path)) <= 2


@pytest.mark.parametrize("kind", ["ResNet", "MobileNetV2"])
def test_convolutions_pooling_and_norms_are_one_delegate_of_any_image_size(kind: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    if kind == "ResNet":
        config: Any = transformers.ResNetConfig(
            embedding_size=8, hidden_sizes=[8, 16], depths=[1, 2], layer_type="basic"
        )
    else:
        config = transformers.MobileNetV2Config(image_size=32, depth_multiplier=0.25, tf_padding=False)
    model = getattr(transformers, f"{kind}ForImageClassification")(config).eval()
    for norm in model.modules():
        if isinstance(norm, torch.nn.BatchNorm2d):  # statistics that a forgotten one would show
            norm.running_mean.normal_()
            norm.running_var.uniform_(0.5, 2)
    sizes = {"pixel_values": {0: "batch", 2: "height", 3: "width"}}
    program = exported(model, images(2, 32), dynamic_shapes=sizes)
    for batch, size in ((2, 32), (1, 64), (3, 48)):
        assert off_by(program, model, images(batch, size)) < 1e-4
    assert len(delegates(program, tmp_path)) == 1


def test_a_state_that_calls_change_is_no_constant() -> None:
    class Counter(transformers.PreTrainedModel):
        config_class = transformers.PreTrainedConfig

        def __init__(self, config: Any) -> None:
            super().__init__(config)
            self.linear = torch.nn.Linear(4, 4)
            self.register_buffer("total", torch.zeros(2, 4))

        def forward(self, x: torch.Tensor) -> Any:
            self.total.add_(self.linear(x))
            return {"y": self.linear(self.total) + 1}

    torch.manual_seed(0)
    model = Counter(transformers.PreTrainedConfig()).eval()
    x = torch.randn(2, 4)
    program = exported(copy.deepcopy(model), {"x": x})
    for _ in range(3):
        with torch.no_grad():
            torch.testing.assert_close(program(x=x)["y"], model(x=x)["y"])


# What differs comes of inputs that are rounded to 8 bits; the weights are those of the reference.
MOST = {"8da4w": 0.03, "8da8w": 0.03, "4w": 1e-5, "8w": 1e-5}


@pytest.mark.parametrize("form", LINEAR)
def test_linear_weights_in_fewer_bits_give_what_their_values_give(form: str, tmp_path: Path) -> None:
    model = qwen3(tie_word_embeddings=False)
    inputs = {"input_ids": tokens(1, 7)["input_ids"], "use_cache": False}
    program = exported(model, inputs, dynamic_shapes={"input_ids": {1: "seq"}}, qlinear=form)
    reference = with_dequantized_weights(model, LINEAR[form])
    for length in (7, 1, 33):
        inputs["input_ids"] = tokens(1, length)["input_ids"]
        assert off_by(program, reference, inputs) < MOST[form]
        assert off_by(program, model, inputs) > 1e-4  # it is not the model's own weights
    assert len(delegates(program, tmp_path)) == 1


@pytest.mark.parametrize("recipe", ["portable", "xnnpack"])
@pytest.mark.parametrize(
    ("form", "group", "scheme"),
    [
        ("8w", None, ("executorch_embedding_byte", 8, 0)),
        ("8w", 32, ("executorch_embedding_byte", 8, 32)),
        ("4w", None, ("executorch_embedding_4bit", 4, 32)),
        ("4w", 0, ("executorch_embedding_4bit", 4, 0)),
    ],
)
def test_embeddings_in_fewer_bits_give_what_their_values_give(
    recipe: str, form: str, group: int | None, scheme: Any
) -> None:
    model = qwen3(tie_word_embeddings=False, num_hidden_layers=1)
    inputs = {"input_ids": tokens(1, 7)["input_ids"], "use_cache": False}
    config = modelport.ExecutorchConfig(recipe=recipe, qembedding=form, qembedding_group_size=group)
    program = modelport.ExecutorchExporter().export(model, inputs, config)
    assert off_by(program, with_dequantized_weights(model, None, scheme), inputs) < 1e-5
    assert off_by(program, model, inputs) > 1e-4


def test_weights_in_fewer_bits_make_the_file_smaller(tmp_path: Path) -> None:
    model = qwen3(hidden_size=256, intermediate_size=512, tie_word_embeddings=True)
    inputs = {"input_ids": tokens(1, 7)["input_ids"], "use_cache": False}
    whole = exported(model, inputs).save(tmp_path / "whole.pte").stat().st_size
    small = exported(model, inputs, qlinear="8da4w", qembedding="8w").save(tmp_path / "small.pte").stat().st_size
    assert small < whole / 5


@pytest.mark.parametrize(
    ("config", "what"),
    [
        ({"qlinear": "8da4w", "qlinear_group_size": 48}, "cannot be quantized with groups of 48"),
        ({"qlinear": "4w", "qlinear_group_size": 32}, "takes one scale a row"),
        ({"qlinear": "3w"}, "'3w' is no way to store the weights of linear layers"),
        ({"qembedding": "8da4w"}, "'8da4w' is no way to store the weights of embeddings"),
    ],
)
def test_a_group_or_a_form_that_does_not_fit_is_named(config: dict[str, Any], what: str, tmp_path: Path) -> None:
    inputs = {"input_ids": tokens(1, 7)["input_ids"], "use_cache": False}
    with pytest.raises(modelport.ExportError, match=what) as caught:
        exported(qwen3(num_hidden_layers=1), inputs, **config).save(tmp_path / "model.pte")
    assert "way out" in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_quantized_products_need_xnnpack() -> None:
    with pytest.raises(modelport.ExportError, match='recipe="xnnpack"'):
        modelport.ExecutorchConfig(qlinear="8w")
