"""LoRA adapters: merged while weights are written, held against a plain sum, and what is refused."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers as t
from safetensors.torch import save_file
from tiny_models import SMALL, VOCABULARY, tiny

import modelport
from modelport import ExportError
from modelport.cli import main
from modelport.weights.adapter import Adapter
from modelport.weights.loading import load_model

IDS = {"input_ids": torch.arange(5, 19).reshape(2, 7)}
RANK, ALPHA = 4, 10


def save_adapter(folder: Path, tensors: dict[str, torch.Tensor], base: object, **settings: Any) -> Path:
    folder.mkdir()
    save_file(
        {f"base_model.model.{name}": value.contiguous() for name, value in tensors.items()},
        folder / "adapter_model.safetensors",
    )
    known = {
        "peft_type": "LORA",
        "base_model_name_or_path": str(base),
        "r": RANK,
        "lora_alpha": ALPHA,
        "task_type": "CAUSAL_LM",
    }
    (folder / "adapter_config.json").write_text(json.dumps(known | settings))
    return folder


def halves(module: str, weight: torch.Tensor, *, inputs_first: bool = False) -> dict[str, torch.Tensor]:
    outputs, inputs = reversed(weight.shape) if inputs_first else weight.shape
    return {
        f"{module}.lora_A.weight": 0.3 * torch.randn(RANK, inputs),
        f"{module}.lora_B.weight": torch.randn(outputs, RANK),
    }


def product(tensors: dict[str, torch.Tensor], module: str) -> torch.Tensor:
    return tensors[f"{module}.lora_B.weight"] @ tensors[f"{module}.lora_A.weight"]


@pytest.fixture
def llama(tmp_path: Path) -> tuple[Any, Path, dict[str, torch.Tensor]]:
    """A model, its folder, and an adapter of two of its layers."""
    model = tiny("llama")
    model.save_pretrained(tmp_path / "base")
    tensors: dict[str, torch.Tensor] = {}
    for module in ("model.layers.0.self_attn.q_proj", "model.layers.1.mlp.down_proj"):
        tensors |= halves(module, model.get_submodule(module).weight)
    return model, tmp_path / "base", tensors


def add(model: Any, tensors: dict[str, torch.Tensor], scale: float) -> Any:
    with torch.no_grad():
        for module in {name.partition(".lora_")[0] for name in tensors if ".lora_" in name}:
            model.get_submodule(module).weight += scale * product(tensors, module)
    return model


@pytest.mark.parametrize("rslora", [False, True])
def test_a_capture_has_the_merged_weights_without_reading_those_of_the_base(
    rslora: bool, llama: Any, tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    model, base, tensors = llama
    folder = save_adapter(tmp_path / "adapter", tensors, base, use_rslora=rslora)
    captured = modelport.capture(folder, IDS, dynamic=True)
    assert not [w for w in recwarn if "the weights are" in str(w.message)]
    assert set(captured.converted_weights()) >= {"model.layers.0.self_attn.q_proj.weight"}
    want = add(model, tensors, ALPHA / (math.sqrt(RANK) if rslora else RANK))
    torch.testing.assert_close(captured.run(**IDS).logits, want(**IDS).logits, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(load_model(folder)(**IDS).logits, want(**IDS).logits, atol=1e-5, rtol=1e-4)


def test_an_export_is_checked_against_the_merged_model(llama: Any, tmp_path: Path) -> None:
    model, base, tensors = llama
    (base / "tokenizer_config.json").write_text("{}")
    pattern = {"alpha_pattern": {"down_proj": 2}}
    folder = save_adapter(tmp_path / "adapter", tensors, base, **pattern)
    assert main(["export", "onnx", str(folder), str(tmp_path / "out"), "-q"]) == 0  # it generates
    assert (tmp_path / "out" / "tokenizer_config.json").exists()
    assert main(["check", str(tmp_path / "out"), "-q"]) == 0
    with torch.no_grad():
        for module, scale in (
            ("model.layers.0.self_attn.q_proj", ALPHA / RANK),
            ("model.layers.1.mlp.down_proj", 2 / RANK),
        ):
            model.get_submodule(module).weight += scale * product(tensors, module)
    out = modelport.load(tmp_path / "out")(**IDS)
    torch.testing.assert_close(out.logits, model(**IDS).logits, atol=1e-4, rtol=1e-3)
    assert main(["export", "onnx", str(folder), str(tmp_path / "half"), "--dtype", "fp16", "-q"]) == 0


def test_weights_that_lie_with_their_inputs_first_and_embeddings_are_merged(tmp_path: Path) -> None:
    model = tiny("gpt2")
    model.save_pretrained(tmp_path / "base")
    module = "transformer.h.0.attn.c_attn"
    tensors = halves(module, model.get_submodule(module).weight, inputs_first=True)
    first, second = torch.randn(RANK, VOCABULARY), torch.randn(32, RANK)
    tensors |= {"transformer.wte.lora_embedding_A": first, "transformer.wte.lora_embedding_B": second}
    folder = save_adapter(tmp_path / "adapter", tensors, tmp_path / "base", fan_in_fan_out=True)
    captured = modelport.capture(folder, IDS)
    with torch.no_grad():
        model.get_submodule(module).weight += ALPHA / RANK * product(tensors, module).T
        model.transformer.wte.weight += ALPHA / RANK * (second @ first).T
    torch.testing.assert_close(captured.run(**IDS).logits, model(**IDS).logits, atol=1e-4, rtol=1e-3)


def test_modules_that_were_trained_as_a_whole_take_the_place_of_the_base_s(tmp_path: Path) -> None:
    """A head with labels of its own, which the base does not have."""
    torch.manual_seed(0)
    model = t.BertForSequenceClassification(t.BertConfig(vocab_size=VOCABULARY, **SMALL, num_labels=5)).eval()
    model.bert.save_pretrained(tmp_path / "base")
    module = "bert.encoder.layer.0.attention.self.query"
    tensors = halves(module, model.get_submodule(module).weight)
    tensors |= {"classifier.weight": model.classifier.weight.data, "classifier.bias": model.classifier.bias.data}
    folder = save_adapter(
        tmp_path / "adapter", tensors, tmp_path / "base", task_type="SEQ_CLS", modules_to_save=["classifier"]
    )
    assert main(["export", "onnx", str(folder), str(tmp_path / "out.onnx"), "-q"]) == 0
    given = IDS | {
        "attention_mask": torch.ones(2, 7, dtype=torch.int64),
        "token_type_ids": torch.zeros(2, 7, dtype=torch.int64),
    }
    want = add(model, tensors, ALPHA / RANK)(**given).logits
    assert want.shape == (2, 5)
    torch.testing.assert_close(modelport.load(tmp_path / "out.onnx")(**given)["logits"], want, atol=1e-5, rtol=1e-4)


def test_a_weight_with_two_names_changes_under_both_unless_one_was_trained_apart(tmp_path: Path) -> None:
    model = tiny("llama", tie_word_embeddings=True)
    model.save_pretrained(tmp_path / "base")
    head, ids = torch.randn(VOCABULARY, 32), IDS["input_ids"]
    apart = save_adapter(tmp_path / "apart", {"lm_head.weight": head}, tmp_path / "base", modules_to_save=["lm_head"])
    want = model.model(ids).last_hidden_state @ head.T
    torch.testing.assert_close(modelport.capture(apart, IDS).run(**IDS).logits, want, atol=1e-4, rtol=1e-3)
    torch.testing.assert_close(load_model(apart)(**IDS).logits, want, atol=1e-4, rtol=1e-3)

    model = tiny("bert for masked words")  # its file has a bias under both of its names
    model.save_pretrained(tmp_path / "bert")
    bias = torch.randn(VOCABULARY)
    both = save_adapter(tmp_path / "both", {"cls.predictions.bias": bias}, tmp_path / "bert", bias="all")
    with torch.no_grad():
        model.cls.predictions.bias.copy_(bias)
    torch.testing.assert_close(
        modelport.capture(both, IDS).run(**IDS).logits, model(**IDS).logits, atol=1e-4, rtol=1e-3
    )


def test_directions_and_lengths_apart_are_put_together(llama: Any, tmp_path: Path) -> None:
    model, base, tensors = llama
    module = "model.layers.0.self_attn.q_proj"
    tensors = {name: value for name, value in tensors.items() if name.startswith(module)}
    lengths = torch.rand(32) + 0.5
    folder = save_adapter(
        tmp_path / "dora", tensors | {f"{module}.lora_magnitude_vector": lengths}, base, use_dora=True
    )
    with torch.no_grad():
        weight = model.get_submodule(module).weight
        moved = weight + ALPHA / RANK * product(tensors, module)
        weight.copy_(torch.stack([size * row / row.norm() for size, row in zip(lengths, moved, strict=True)]))
    torch.testing.assert_close(load_model(folder)(**IDS).logits, model(**IDS).logits, atol=1e-5, rtol=1e-4)


def test_what_is_no_plain_lora_is_refused_with_a_way_out(llama: Any, tmp_path: Path) -> None:
    _, base, tensors = llama

    def refused(name: str, tensors: dict[str, torch.Tensor] = tensors, base: object = base, **settings: Any) -> str:
        with pytest.raises(ExportError) as error:
            modelport.capture(save_adapter(tmp_path / name, tensors, base, **settings), IDS)
        assert error.value.code == "E0104" and error.value.diagnostics[0]["ways_out"]
        return str(error.value)

    assert "it is a IA3" in refused("ia3", peft_type="IA3")
    assert "merge_and_unload" in refused("pissa", init_lora_weights="pissa_niter_4")
    assert "it uses target_parameters" in refused("experts", target_parameters=["experts.up"])
    assert "which is not here" in refused("alone", base=tmp_path / "none")
    assert "does not say which model" in refused("nameless", base="")
    half = {name: value for name, value in tensors.items() if "lora_B" not in name}
    assert "a half of the change" in refused("half", half)
    other = {f"model.layers.9.{name}": value for name, value in halves("up", torch.ones(3, 3)).items()}
    assert "does not have" in refused("other", other)


def test_scales_follow_the_settings(tmp_path: Path) -> None:
    tensors = halves("a.q_proj", torch.ones(3, 3)) | halves("a.k_proj", torch.ones(3, 3))
    folder = save_adapter(tmp_path / "adapter", tensors, "base", alpha_pattern={"k_proj": 40})
    scales = {name: change.scale for name, change in Adapter(folder).changes.items()}
    assert scales == {"a.q_proj.weight": 2.5, "a.k_proj.weight": 10.0}
