"""Weights in 4 and 8 bits: what is stored, how far values move, and how that is shown."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tiny_generators
import torch
import transformers
from tiny_decoders import exported, made

from modelport import ExportError, OnnxConfig, OnnxExporter, check, load
from modelport.artifacts.artifact import Artifact
from modelport.checking.quality import QualityAsked, compare_quality

TELLER = Path(__file__).parents[2] / "examples/teller"


class Product(torch.nn.Module):
    def __init__(self, columns: int = 64) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(columns, 48)
        self.eval()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x)


def _program(model: torch.nn.Module, columns: int = 64, **config):
    return OnnxExporter().export(model, {"x": torch.randn(3, columns)}, OnnxConfig(dynamic=True, **config))


@pytest.mark.parametrize(("dtype", "error"), [("int4", 0.12), ("int8", 0.01)])
@pytest.mark.parametrize("symmetric", [True, False])
def test_a_product_of_few_bits_is_near_that_of_floats(dtype, error, symmetric):
    torch.manual_seed(0)
    model = Product()
    program = _program(model, dtype=dtype, quantization={"symmetric": symmetric, "accuracy_level": 4})
    assert "com.microsoft.MatMulNBits" in str(program.graph)
    x = torch.randn(5, 64)
    got, want = program(x=x)[0], model(x).detach()
    assert 0 < float((got - want).norm() / (want - model.linear.bias.detach()).norm()) < error


def test_blocks_need_not_fill_a_row():
    torch.manual_seed(0)
    model = Product(80)
    got = _program(model, 80, dtype="int8", quantization={"block_size": 64})(x=torch.ones(1, 80))[0]
    torch.testing.assert_close(got, model(torch.ones(1, 80)), atol=0.02, rtol=0.02)


def test_an_embedding_that_is_the_head_is_stored_once(tmp_path):
    model = made("gemma3")  # tied
    exported(model, dtype="int4").save(tmp_path)
    found = Artifact(tmp_path / "model.onnx").summary
    assert found["operators"]["com.microsoft.GatherBlockQuantized"] == 1
    codes = [row for row in found["weights"] if row["name"].endswith(".codes")]
    assert len({row["name"] for row in codes}) == len(codes) == found["operators"]["com.microsoft.MatMulNBits"]
    assert not any(row["name"] == "model.embed_tokens.weight" for row in found["weights"])


def test_a_search_for_scales_errs_less_than_the_largest_weight():
    torch.manual_seed(0)
    model, x = Product(256), torch.randn(16, 256)
    errors = {}
    for method in ("search", "range"):
        settings = {"method": method, "block_size": 128, "accuracy_level": 0}
        program = _program(model, 256, dtype="int4", quantization=settings)
        errors[method] = float((program(x=x)[0] - model(x).detach()).norm())
    assert errors["search"] < errors["range"]


@pytest.mark.parametrize("name", ["gpt2", "openai-gpt"])
def test_weights_that_lie_the_other_way_round_are_stored_too(name, tmp_path):
    sizes = {"vocab_size": 128, "n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 64}
    torch.manual_seed(0)
    config = transformers.AutoConfig.for_model(name, **sizes, bos_token_id=1, eos_token_id=None)
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    exported(model, dtype="int8").save(tmp_path)
    found = Artifact(tmp_path / "model.onnx").summary
    assert found["operators"]["com.microsoft.MatMulNBits"] == 2 * 4 + 1 and "Gemm" not in found["operators"]
    ids = torch.randint(2, 128, (2, 9))
    with torch.no_grad():
        want = model(input_ids=ids).logits
    got = load(tmp_path)(input_ids=ids).logits
    assert 0 < float((got - want).norm() / want.norm()) < 0.02


def test_layers_may_have_bits_of_their_own(tmp_path):
    model = made("qwen3")
    layers = {"*.down_proj": "int8", "model.layers.0.*": "float", "model.layers.0.self_attn.o_proj": "int4"}
    exported(model, dtype="int4", quantization={"layers": layers}).save(tmp_path)
    stored = {row["name"]: row["bytes"] for row in Artifact(tmp_path / "model.onnx").summary["weights"]}
    rows, columns = model.model.layers[1].mlp.down_proj.weight.shape
    assert stored["model.layers.1.mlp.down_proj.weight.codes"] == rows * columns
    rows, columns = model.model.layers[0].self_attn.o_proj.weight.shape
    assert stored["model.layers.0.self_attn.o_proj.weight.codes"] == rows * columns // 2
    first = [name for name in stored if name.startswith("model.layers.0.mlp")]
    assert first and not any(name.endswith(".codes") for name in first)


def test_a_head_that_is_the_embedding_as_well_has_both_names(tmp_path):
    model = made("qwen3")
    model.lm_head.weight = model.model.embed_tokens.weight
    for name in ("lm_head", "model.embed_tokens"):
        exported(model, dtype="int4", quantization={"layers": {name: "int8"}}).save(tmp_path / name)
        stored = {row["name"]: row["bytes"] for row in Artifact(tmp_path / name / "model.onnx").summary["weights"]}
        assert stored["model.embed_tokens.weight.codes"] == model.lm_head.weight.numel()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"layers": {"lm_heed": "int8"}}, r"called lm_heed; there are lm_head"),
        ({"layers": {"lm_head": "int3"}}, r"choose from int4, q4, int8, q8, float"),
        ({"layers": {"lm_head": "int4"}, "form": "dynamic", "bits": 8}, r"choose from int8, q8, float"),
        ({"layers": {"lm_head": "int8"}, "accuracy_level": 0}, "accuracy_level=4"),
    ],
)
def test_layers_that_cannot_be_meant_are_refused(settings, message):
    with pytest.raises(ExportError, match=message):
        exported(made("qwen3"), quantization={"bits": 4} | settings)


def test_patterns_of_a_part_are_of_the_modules_in_that_part():
    model = tiny_generators.made(tiny_generators.t5)

    def export(**patterns):
        config = {
            part: OnnxConfig(dtype="int4", quantization={"layers": {pattern: "int8"}})
            for part, pattern in patterns.items()
        }
        return OnnxExporter().export_for_generation(model, {"input_ids": torch.ones(2, 5, dtype=torch.int64)}, config)

    assert len(export(encoder_model="block.*.wi*", decoder_model_merged="*.EncDecAttention.q")) == 2
    with pytest.raises(ExportError, match=r"called \*\.EncDecAttention\.z; there are "):
        export(encoder_model="block.*.wi*", decoder_model_merged="*.EncDecAttention.z")


@pytest.mark.parametrize("what", [{"block_size": 24}, {"bits": 3}, {"method": "best"}, {"blocks": 32}])
def test_what_cannot_be_stored_is_refused(what):
    with pytest.raises(ExportError):
        OnnxConfig(quantization=what)
    with pytest.raises(ExportError, match="copy"):
        OnnxConfig(dtype="int4", weights="link")


def test_the_demo_model_in_4_bits_is_within_5_percent(tmp_path):
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(TELLER, dtype=torch.float32).eval()
    ids = torch.ones(2, 5, dtype=torch.int64)
    growth = {}
    for method in ("search", "range"):
        config = OnnxConfig(dtype="int4", operators="onnxruntime", quantization={"method": method})
        OnnxExporter().export_for_generation(model, {"input_ids": ids}, config).save(tmp_path / method)
        report = compare_quality(tmp_path / method, model, method)
        growth[method] = report.growth
        assert report.ok and report.same_guess > 0.85
    assert growth["search"] < 5
    story = tmp_path / "story.txt"
    story.write_text("Once upon a time there was a little girl who lived in a small house near the forest. " * 4)
    for name in ("tokenizer.json", "tokenizer_config.json", "config.json"):
        (tmp_path / "search" / name).write_bytes((TELLER / name).read_bytes())
    read = check(tmp_path / "search", model, quality=QualityAsked(str(story), 0.0))
    assert read.text == "story.txt" and "perplexity" in str(read)
    assert read.ok == (read.growth <= 0)
    assert "--dtype int8" in str(read.error())


def test_it_generates(tmp_path):
    exported(made("qwen3"), dtype="int8").save(tmp_path)
    tokens = load(tmp_path).generate(torch.tensor([[5, 6, 7]]), max_new_tokens=5, do_sample=False)
    assert tokens.shape == (1, 8) and np.isin(tokens.numpy(), np.arange(128)).all()


_EXPERTS = {"num_hidden_layers": 2, "hidden_size": 32, "num_attention_heads": 4, "num_key_value_heads": 2}
_EXPERTS |= {"vocab_size": 128, "intermediate_size": 48, "moe_intermediate_size": 32, "head_dim": 8}
MIXTURES = {
    "MixtralForCausalLM": {"num_local_experts": 4, "num_experts_per_tok": 2},
    "Qwen2MoeForCausalLM": {"num_experts": 4, "num_experts_per_tok": 3, "norm_topk_prob": False},
    "Qwen3MoeForCausalLM": {"num_experts": 4, "num_experts_per_tok": 2, "norm_topk_prob": True},
    "OlmoeForCausalLM": {"num_experts": 4, "num_experts_per_tok": 1},
}


@pytest.mark.parametrize("name", MIXTURES)
def test_experts_are_stored_in_few_bits_whatever_their_shares(name, tmp_path):
    cls = getattr(transformers, name)
    torch.manual_seed(0)
    model = cls(cls.config_class(**_EXPERTS, **MIXTURES[name])).eval()
    block, x = model.model.layers[1].mlp, torch.randn(2, 7, 32)
    with torch.no_grad():
        for parameter in block.parameters():
            parameter *= 10
        want = block(x)
    for dtype, error in (("int8", 0.03), ("int4", 0.15)):
        config = OnnxConfig(dynamic=True, dtype=dtype, quantization={"block_size": 16})
        program = OnnxExporter().export(block, {"hidden_states": x[:, :3].contiguous()}, config)
        program.save(tmp_path / f"{dtype}.onnx")
        found = Artifact(tmp_path / f"{dtype}.onnx").summary
        assert found["operators"]["com.microsoft.QMoE"] == 1
        codes = [row for row in found["weights"] if row["name"].endswith(".codes") and "experts." in row["name"]]
        assert len(codes) == 2 and sum(row["bytes"] for row in found["weights"]) < sum(map(_bytes, block.parameters()))
        got = program(hidden_states=x)[0]
        assert 0 < float((got - want).norm() / want.norm()) < error


@pytest.mark.parametrize("layers", [{"*experts*": "float"}, {"*experts.down_proj": "int8"}])
def test_experts_stay_floats_where_their_kernel_cannot_have_them(layers):
    """It takes weights in few bits, and as many for both products."""
    torch.manual_seed(0)
    block = transformers.OlmoeForCausalLM(
        transformers.OlmoeConfig(**_EXPERTS, **MIXTURES["OlmoeForCausalLM"])
    ).model.layers[1].mlp.eval()  # fmt: skip
    x = torch.randn(2, 7, 32)
    config = OnnxConfig(dynamic=True, dtype="int4", quantization={"block_size": 16, "layers": layers})
    program = OnnxExporter().export(block, {"hidden_states": x[:, :3].contiguous()}, config)
    assert "QMoE" not in str(program.graph)
    notes = [why for what, why, _ in program.graph.fusions() if what == "weights in few bits"]
    assert bool(notes) == ("float" not in layers.values()) and all("these stay floats" in why for why in notes)
    torch.testing.assert_close(program(hidden_states=x)[0], block(x), atol=1e-5, rtol=1e-4)


def _bytes(parameter):
    return parameter.numel() * parameter.itemsize // 2
