"""Short convolutions whose state goes from call to call, by onnxruntime's own kernel: what the model and standard
operators say, for prompts and steps of many lengths."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from executorch_decoders import CHANNELWISE, LINEAR, tiny

import modelport
from modelport import OnnxConfig, OnnxExporter

MIXED = {"mamba_n_heads": 4, "mamba_d_head": 16, "mamba_n_groups": 1, "mamba_d_state": 8, "attn_layer_indices": [1]}
# What a model is, what it is made with, and how many layers convolve.
MODELS: dict[str, tuple[dict[str, Any], int]] = {
    "qwen3_next": (LINEAR, 3),
    "lfm2": ({"layer_types": ["conv", "full_attention"]}, 1),
    "kimi_linear": (CHANNELWISE, 1),
    "bamba": (MIXED, 1),
}
FUSION = "convolution with a carried state"


def decoder(model: Any, operators: str) -> Any:
    ids = torch.randint(3, 30, (2, 5))
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    return OnnxExporter().export_for_generation(model, inputs, OnnxConfig(operators=operators))["model"]


def operators_of(program: Any) -> Counter[str]:
    return Counter(node.op_type for node in program.model_proto.graph.node)


def logits_of_steps(program: Any, ids: torch.Tensor, lengths: list[int]) -> torch.Tensor:
    """The text read in pieces, each with the state that the one before left."""
    rows, seen, found = ids.shape[0], 0, []
    state = {
        name: torch.zeros([0 if isinstance(size, str) else size for size in sizes])
        for name, sizes in states_of(program, rows).items()
    }
    in_place = "GroupQueryAttention" in str(program.graph)
    for length in lengths:
        piece = {
            "input_ids": ids[:, seen : seen + length],
            "attention_mask": torch.ones(rows, seen + length, dtype=torch.long),
            "position_ids": torch.arange(seen, seen + length).expand(rows, length),
        }
        given = {name: value for name, value in (piece | state).items() if name in program.input_names}
        # On a cache in place the kernel reads several tokens after others for one row at a time.
        calls = rows if in_place and seen and length > 1 else 1
        parts = [[value.chunk(calls)[i] for value in given.values()] for i in range(calls)]
        results = [program(**dict(zip(given, part, strict=True))) for part in parts]
        named = dict(zip(program.output_names, map(torch.cat, zip(*results, strict=True)), strict=True))
        found.append(named["logits"])
        state = {name: named[name.replace("past_key_values", "present").replace("past_", "present_")] for name in state}
        seen += length
    return torch.cat(found, dim=1)


def states_of(program: Any, rows: int) -> dict[str, list[Any]]:
    return {
        value.name: [rows, *(dim.dim_value or dim.dim_param for dim in value.type.tensor_type.shape.dim[1:])]
        for value in program.model_proto.graph.input
        if value.name.startswith("past")
    }


@pytest.fixture(scope="module", params=MODELS)
def made(request: Any) -> tuple[Any, Any, Any, int]:
    sizes, layers = MODELS[request.param]
    model = tiny(request.param, **sizes | {"max_position_embeddings": 128, "initializer_range": 0.1})
    return model, decoder(model, "onnxruntime"), decoder(model, "standard"), layers


def test_every_layer_that_convolves_does_it_by_one_operator(made: Any) -> None:
    _, own, standard, layers = made
    assert (operators_of(own)["CausalConvWithState"], operators_of(own)["Conv"]) == (layers, 0)
    assert (operators_of(standard)["CausalConvWithState"], operators_of(standard)["Conv"]) == (0, layers)
    assert [why for fusion, why, _ in own.graph.fusions() if fusion == FUSION] == [""] * layers


@pytest.mark.parametrize("lengths", [[1] * 7, [9, 1, 1, 1], [2, 3, 1, 4, 1], [70, 1, 5]], ids=str)
@pytest.mark.parametrize("rows", [1, 3])
def test_pieces_of_a_text_give_what_the_whole_gives(made: Any, lengths: list[int], rows: int) -> None:
    model, own, standard, _ = made
    ids = torch.randint(3, 30, (rows, sum(lengths)), generator=torch.Generator().manual_seed(rows))
    found = logits_of_steps(own, ids, lengths)
    torch.testing.assert_close(found, logits_of_steps(standard, ids, lengths), atol=2e-5, rtol=1e-5)
    with torch.no_grad():
        torch.testing.assert_close(found, model(ids).logits, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("kind", ["mamba", "mamba2"])
def test_a_prompt_read_by_a_graph_of_its_own_leaves_its_state_to_the_kernel(kind: str, tmp_path: Path) -> None:
    heads = {"num_heads": 4, "head_dim": 16, "state_size": 8, "n_groups": 2} if kind == "mamba2" else {}
    model = tiny(kind, **heads)
    ids = torch.randint(3, 30, (2, 5))
    parts = OnnxExporter().export_for_generation(model, {"input_ids": ids}, OnnxConfig(operators="onnxruntime"))
    later = parts["decoder_with_past_model"]
    assert (operators_of(later)["CausalConvWithState"], operators_of(later)["Conv"]) == (2, 0)
    parts.save(tmp_path)
    settings = {"max_new_tokens": 9, "min_new_tokens": 9, "do_sample": False, "pad_token_id": 0}
    for rows, length in ((1, 1), (1, 3), (3, 11)):
        text = torch.randint(3, 30, (rows, length), generator=torch.Generator().manual_seed(length))
        got = modelport.load(tmp_path).generate(text, **settings)
        assert got.tolist() == model.generate(text, **settings).tolist()
