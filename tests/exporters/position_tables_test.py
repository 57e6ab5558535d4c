"""What a rotation takes from each position is a tensor of the file, for every position there can be: computed as the
model computes it, stored once, and never in the heap of a runtime that would compute it on each load."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
import transformers as t
from tiny_decoders import DECODERS, exported, made

import modelport

POSITIONS = 64


def _tables(path: Path) -> dict[str, Any]:
    """By the input of the kernel, those of all layers by their names in the file."""
    model = onnx.load(str(path))
    stored = {row.name: onnx.numpy_helper.to_array(row) for row in model.graph.initializer}
    nodes = [node for node in model.graph.node if node.op_type == "GroupQueryAttention"]
    assert nodes
    return {what: {node.input[at]: stored[node.input[at]] for node in nodes} for what, at in (("cos", 7), ("sin", 8))}


def _rotation(model: Any, *args: Any) -> tuple[Any, Any]:
    """cos and sin of the model's own module, the columns for pairs."""
    with torch.no_grad():
        cos, sin = model.model.rotary_emb(torch.zeros(1, 1, 1), torch.arange(POSITIONS)[None], *args)
    return cos[0, :, : cos.shape[2] // 2].numpy(), sin[0, :, : sin.shape[2] // 2].numpy()


@pytest.mark.parametrize("name", [name for name, (_, _, inside) in DECODERS.items() if inside])
def test_no_file_computes_its_rotation(name: str) -> None:
    text = str(exported(made(name))["model"].graph)
    assert "onnx.Cos(" not in text and "onnx.Sin(" not in text


def test_tables_are_those_of_the_model_and_all_layers_have_the_same(tmp_path: Path) -> None:
    model = made("llama")
    exported(model).save(tmp_path)
    tables = _tables(tmp_path / "model.onnx")
    cos, sin = _rotation(model)
    assert list(tables["cos"]) == ["model.rotary_emb.cos"] and list(tables["sin"]) == ["model.rotary_emb.sin"]
    np.testing.assert_array_equal(tables["cos"]["model.rotary_emb.cos"], cos)
    np.testing.assert_array_equal(tables["sin"]["model.rotary_emb.sin"], sin)


def test_layers_that_turn_otherwise_have_tables_of_their_own(tmp_path: Path) -> None:
    kinds = ["sliding_attention", "full_attention"]
    sizes = {"vocab_size": 128, "hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 4, "head_dim": 16}
    torch.manual_seed(0)
    model = t.Gemma3ForCausalLM(
        t.Gemma3TextConfig(
            **sizes,
            num_key_value_heads=2,
            num_hidden_layers=4,
            max_position_embeddings=POSITIONS,
            layer_types=2 * kinds,
        )
    ).eval()
    exported(model).save(tmp_path)
    tables = _tables(tmp_path / "model.onnx")
    for what, of_module in (("cos", 0), ("sin", 1)):
        assert len(tables[what]) == 2
        for kind, table in zip(kinds, tables[what].values(), strict=True):
            np.testing.assert_array_equal(table, _rotation(model, kind)[of_module])


def test_tables_have_the_type_of_the_queries(tmp_path: Path) -> None:
    model = made("llama")
    model.save_pretrained(tmp_path / "model")
    exported(tmp_path / "model", dtype="fp16").save(tmp_path / "out")
    (table,) = _tables(tmp_path / "out" / "model.onnx")["cos"].values()
    np.testing.assert_array_equal(table, _rotation(model)[0].astype(np.float16))


def test_without_weights_the_tables_stay_for_no_caller_has_them(tmp_path: Path) -> None:
    exported(made("llama"), export_params=False).save(tmp_path)
    graph = onnx.load(str(tmp_path / "model.onnx")).graph
    assert {row.name for row in graph.initializer} >= {"model.rotary_emb.cos", "model.rotary_emb.sin"}
    inputs = {row.name for row in graph.input}
    assert "model.embed_tokens.weight" in inputs and "model.rotary_emb.cos" not in inputs


def test_beside_linked_weights_large_tables_have_a_file_of_their_own(tmp_path: Path) -> None:
    torch.manual_seed(0)
    config = t.LlamaConfig(
        vocab_size=128, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96,
        max_position_embeddings=40_960, bos_token_id=1, eos_token_id=None, pad_token_id=0,
    )  # fmt: skip
    model = t.LlamaForCausalLM(config).eval()
    model.save_pretrained(tmp_path / "model")
    parts = exported(tmp_path / "model", weights="link")
    for _ in range(2):  # also over an earlier one
        parts.save(tmp_path / "out")
        own = (tmp_path / "model" / "model.safetensors").stat().st_ino
        files = {path.name: path.stat() for path in (tmp_path / "out").glob("model.onnx*")}
        assert set(files) == {"model.onnx", "model.onnx_data", "model.onnx_data_1"}
        assert files["model.onnx_data"].st_ino == own
        assert files["model.onnx_data_1"].st_size == 2 * 40_960 * 8 * 4
        assert files["model.onnx"].st_size < 100_000
    prompt = {"input_ids": torch.tensor([[5, 6, 7]]), "attention_mask": torch.ones(1, 3, dtype=torch.int64)}
    settings = {"max_new_tokens": 12, "do_sample": False}
    got = modelport.load(tmp_path / "out").generate(**prompt, **settings)
    assert got.tolist() == model.generate(**prompt, **settings).tolist()
    assert (tmp_path / "model" / "model.safetensors").stat().st_ino == own
