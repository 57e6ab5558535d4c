"""Caches in place of models whose masks hide more than padding, or that keep states beside keys and values: padding
stays where the caller has it."""

from __future__ import annotations

import copy
import inspect
from typing import Any

import pytest
import torch
import transformers as t
from own_attention import OwnConfig

import modelport

BLOCK = 8  # tokens that layers of Llama 4 look back at most, from the last multiple of it on
_SMALL = {
    "vocab_size": 100, "hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2,
    "intermediate_size": 96, "max_position_embeddings": 64, "bos_token_id": 1, "eos_token_id": None, "pad_token_id": 0,
}  # fmt: skip
_BLOCKS = {"attention_chunk_size": BLOCK, "head_dim": 16, "num_local_experts": 2, "intermediate_size_mlp": 96}
_TABLES = {"attention_types": [[["global", "local", "global"], 1]], "window_size": BLOCK}
KINDS = {
    "a state of a convolution": (t.Lfm2Config, {"layer_types": ["conv", "full_attention", "conv"], "conv_L_cache": 3}),
    "blocks of the text": (t.Llama4TextConfig, _BLOCKS),
    "distances, with rows and heads in one axis": (t.BloomConfig, {}),
    "distances, and scores that are filled in": (t.MptConfig, {"use_cache": True, "max_seq_len": 64}),
    "tables of what is seen": (t.GPTNeoConfig, _TABLES),
    "masks of a model that nobody knows": (OwnConfig, {}),
}

PLAIN = {"a state of a convolution", "blocks of the text"}  # attention in a form that has a row


def _model(kind: str) -> Any:
    config, more = KINDS[kind]
    torch.manual_seed(0)
    model = t.AutoModelForCausalLM.from_config(config(**_SMALL | more)).eval()
    with torch.no_grad():
        for parameter in model.parameters():  # so that tokens change from step to step
            parameter *= 3
    return model


@pytest.fixture(scope="module", params=KINDS)
def both(request: Any, tmp_path_factory: Any) -> tuple[Any, Any]:
    """The model, and its export."""
    model, folder = _model(request.param), tmp_path_factory.mktemp("export")
    config = modelport.OnnxConfig(operators="onnxruntime")
    parts = modelport.OnnxExporter().export_for_generation(model, _texts(7, 5), config)
    (program,) = parts.values()
    made = {name for name, why, _ in program.graph.fusions() if not why}
    path = "" if request.param in PLAIN else ", with what is added to its scores"
    assert f"attention on a cache{path}, in place, with the model's own mask" in made
    parts.save(folder)
    return model, modelport.load(folder)


def _texts(*lengths: int) -> dict[str, torch.Tensor]:
    """Rows of these many tokens, padded in front."""
    torch.manual_seed(sum(lengths))
    longest = max(lengths)
    mask = (torch.arange(longest) >= longest - torch.tensor(lengths)[:, None]).long()
    return {"input_ids": torch.randint(3, 100, mask.shape) * mask, "attention_mask": mask}


def _called(model: Any, given: dict[str, torch.Tensor]) -> torch.Tensor:
    """Logits of the model, with the positions that `generate` gives it."""
    positions = (given["attention_mask"].cumsum(1) - 1).clamp(min=0)
    takes = "position_ids" in inspect.signature(model.forward).parameters
    with torch.no_grad():
        return model(**given, **({"position_ids": positions} if takes else {})).logits


@pytest.mark.parametrize("lengths", [(3,), (6, 2, 4), (BLOCK,), (BLOCK + 3, BLOCK - 2), (3 * BLOCK + 1, 5)])
def test_it_gives_the_logits_and_tokens_of_the_model(both: tuple[Any, Any], lengths: tuple[int, ...]) -> None:
    model, loaded = both
    given = _texts(*lengths)
    want = _called(model, given)
    there = given["attention_mask"].bool()
    torch.testing.assert_close(loaded(**given).logits[there], want[there], atol=2e-4, rtol=2e-4)
    settings = {"max_new_tokens": 2 * BLOCK, "min_new_tokens": 2 * BLOCK, "do_sample": False}
    assert torch.equal(loaded.generate(**given, **settings), model.generate(**given, **settings))


def test_beams_are_those_of_the_model(both: tuple[Any, Any]) -> None:
    model, loaded = both
    settings = {"max_new_tokens": BLOCK, "num_beams": 3, "do_sample": False}
    given = _texts(6, 3)
    assert torch.equal(loaded.generate(**given, **settings), model.generate(**given, **settings))


def test_several_tokens_after_others_are_read_in_every_row(both: tuple[Any, Any]) -> None:
    model, loaded = both
    given = _texts(11, 9)
    ids, mask, cache = given["input_ids"], given["attention_mask"], loaded.new_cache()
    want = _called(model, given)
    loaded(input_ids=ids[:, :4], attention_mask=mask[:, :4], past_key_values=cache)
    kept = copy.deepcopy(cache)
    for one in (cache, kept):  # a copy is not written to by what goes on from the other
        got = loaded(input_ids=ids[:, 4:], attention_mask=mask, past_key_values=one).logits
        torch.testing.assert_close(got, want[:, 4:], atol=2e-4, rtol=2e-4)
    assert cache.get_seq_length() == 11 and all(tensor.shape[0] == 2 for tensor in cache.tensors())


def test_a_state_cannot_go_back(both: tuple[Any, Any]) -> None:
    _, loaded = both
    cache = loaded.new_cache()
    loaded(**_texts(5), past_key_values=cache)
    if cache.states:
        with pytest.raises(modelport.ExportError, match="cannot go back"):
            cache.crop(-2)
    else:
        cache.crop(-2)
        assert cache.get_seq_length() == 3


def test_a_text_goes_on_from_what_a_call_left(both: tuple[Any, Any]) -> None:
    model, loaded = both
    given, settings = _texts(5), {"max_new_tokens": 4, "do_sample": False}
    first = loaded.generate(**given, **settings, return_dict_in_generate=True)
    # Without a mask transformers would take tokens of the text for padding where they are the same.
    mask = torch.ones_like(first.sequences)
    more = loaded.generate(first.sequences, attention_mask=mask, past_key_values=first.past_key_values, **settings)
    assert torch.equal(more, model.generate(**given, max_new_tokens=8, do_sample=False))
