"""Exports of onnxruntime's own operators: the same values as those of standard ones, however the model writes its
attention."""

from __future__ import annotations

import itertools
import re

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
import transformers as t
from tiny_decoders import DECODERS, VOCABULARY, Steps, exported, made

from modelport import ExportError, OnnxConfig

# Batches by the lengths of their rows, and steps after them: within a window of 8, over its edge, and far from it.
SIZES = [([3], 4), ([5, 1, 4], 3), ([12, 7], 8)]


@pytest.fixture(scope="module")
def check_alone():
    """What of a file tells whether the cache is written where the mask says."""
    whole, name = onnx.load_from_string(exported(made("llama"))["model"].to_bytes()), "modelport.check.0"
    whole.graph.output.append(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.BOOL, [1]))
    check = onnx.utils.Extractor(whole).extract_model(["input_ids", "attention_mask"], [name])
    return onnxruntime.InferenceSession(check.SerializeToString())


def _graph(parts) -> str:
    return str(parts["model"].graph)


@pytest.mark.parametrize("name", DECODERS)
def test_a_decoder_attends_on_its_cache_in_place(name):
    _, attribute, inside = DECODERS[name]
    program = exported(made(name))["model"]
    text = str(program.graph)
    attention = re.findall(r"com\.microsoft\.GroupQueryAttention\(.*", text)
    assert len(attention) == 2
    assert any(attribute in line for line in attention)
    assert all(("do_rotary=1" in line) == inside for line in attention)
    assert "onnx.Attention" not in text and "onnx.Softmax" not in re.sub(r"experts|router", "", text.split("return")[1])
    # Positions that only the rotation was made from are no input any more.
    assert ("position_ids" in program.input_names) == (not inside)


@pytest.mark.parametrize("processor", ["any", "x86_64"])
@pytest.mark.parametrize("name", DECODERS)
def test_it_gives_the_values_of_standard_operators(name, processor):
    """Rows of a batch are padded at their end, as onnxruntime-genai does it, and are each as if they were alone."""
    model = made(name)
    standard, own = Steps(exported(model, "standard")["model"]), Steps(exported(model, processor=processor)["model"])
    random = np.random.default_rng(0)
    for lengths, steps in SIZES:
        batch, longest = len(lengths), max(lengths)
        ids = random.integers(3, VOCABULARY, (batch, longest))
        mask = (np.arange(longest) < np.array(lengths)[:, None]).astype(np.int64)
        ids[mask == 0] = 0
        result = own(ids, mask, own.empty(batch))
        rows = [standard(ids[r : r + 1, :n], mask[r : r + 1, :n], standard.empty(1)) for r, n in enumerate(lengths)]
        for r, n in enumerate(lengths):
            np.testing.assert_allclose(result.logits[r, :n], rows[r].logits[0], atol=2e-6)
        for step in range(1, steps + 1):
            ids = random.integers(3, VOCABULARY, (batch, 1))
            mask = np.concatenate([mask, np.ones((batch, 1), np.int64)], 1)
            result = own(ids, mask, result.cache)
            ones = [np.ones((1, n + step), np.int64) for n in lengths]
            rows = [standard(ids[r : r + 1], ones[r], rows[r].cache) for r in range(batch)]
            np.testing.assert_allclose(result.logits, np.concatenate([row.logits for row in rows]), atol=2e-6)


def test_several_tokens_after_a_past_are_read_at_once():
    model = made("qwen3")
    standard, own = (Steps(exported(model, operators)["model"]) for operators in ("standard", "onnxruntime"))
    ids = np.random.default_rng(0).integers(3, VOCABULARY, (1, 13))
    whole = standard(ids, np.ones((1, 13), np.int64), standard.empty(1)).logits
    first = own(ids[:, :6], np.ones((1, 6), np.int64), own.empty(1))
    second = own(ids[:, 6:], np.ones((1, 13), np.int64), first.cache)
    np.testing.assert_allclose(np.concatenate([first.logits, second.logits], 1), whole, atol=2e-6)


def test_a_cache_that_is_longer_than_its_tokens_is_written_into():
    own = Steps(exported(made("qwen3"))["model"])
    ids, ones = np.full((1, 4), 7), np.ones((1, 4), np.int64)
    room = {name: np.zeros((1, value.shape[1], 32, value.shape[3]), np.float32) for name, value in own.empty(1).items()}
    result = own(ids, ones, room)
    assert all(value.shape[2] == 32 and not value[:, :, 4:].any() for value in result.cache.values())
    np.testing.assert_allclose(result.logits, own(ids, ones, own.empty(1)).logits, atol=1e-6)


def test_a_model_that_takes_one_softmax_from_another_keeps_its_attention():
    torch.manual_seed(0)
    sizes = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 1, "num_attention_heads": 4}
    model = t.DiffLlamaForCausalLM(t.DiffLlamaConfig(vocab_size=VOCABULARY, **sizes)).eval()
    program = exported(model)["model"]
    assert "GroupQueryAttention" not in str(program.graph)
    assert any(why for _, why, _ in program.graph.fusions())


def test_standard_operators_are_the_default():
    assert OnnxConfig().operators == "standard"
    assert "com.microsoft" not in _graph(exported(made("llama"), "standard"))
    with pytest.raises(ExportError, match="'onnxruntime'"):
        OnnxConfig(operators="cuda")


def test_the_limits_say_how_long_a_text_may_be():
    program = exported(made("llama"))["model"]
    assert "total_sequence_length is 1 to 64" in program.limits.words
    assert any("padding" in words for words in program.limits.words)


def test_a_sum_and_the_norm_of_it_are_one_node():
    found = _graph(exported(made("llama")))
    assert found.count("com.microsoft.SkipSimplifiedLayerNormalization(") >= 4
    assert len(re.findall(r"onnx\.\w*LayerNormalization\(", found)) <= 1  # of the embedding
    assert "Skip" not in _graph(exported(made("llama"), "standard"))


def _is_right(row: tuple[int, ...], fresh: int) -> bool:
    """Tokens come before padding, which only a first call has."""
    past, new = row[:-fresh], row[-fresh:]
    return sum(new) > 0 and list(new) == sorted(new, reverse=True) and (not past or all(new))


@pytest.mark.parametrize("fresh", [1, 2, 3, 4])
def test_the_check_of_a_file_holds_exactly_where_tokens_come_before_their_padding(fresh, check_alone):
    rows = list(itertools.product([0, 1], repeat=4))
    for pair in itertools.product(rows, rows):
        given = {"input_ids": np.zeros((2, fresh), np.int64), "attention_mask": np.array(pair)}
        assert check_alone.run(None, given)[0].tolist() == [all(_is_right(row, fresh) for row in pair)], (pair, fresh)


def test_a_number_of_a_mask_is_one_token_however_large_it_is(check_alone):
    for pair in ([[0, 2], [1, 1]], [[0, 2], [0, 2]]):
        given = {"input_ids": np.zeros((2, 2), np.int64), "attention_mask": np.array(pair)}
        assert check_alone.run(None, given)[0].tolist() == [False], pair


def test_the_last_token_is_looked_for_once():
    assert _graph(exported(made("qwen3"), last_logits=True)).count("onnx.ArgMax(") == 1
