"""`modelport.load` of files that write into their cache: the tokens of PyTorch, buffers that stay where they are."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tiny_decoders import DECODERS, VOCABULARY, exported, made, padded

import modelport
from modelport import ExportError


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    found = {}

    def load(name, **config):
        key = (name, *config.items())
        if key not in found:
            model, folder = made(name), tmp_path_factory.mktemp("model")
            exported(model, **config).save(folder)
            found[key] = model, modelport.load(folder)
        return found[key]

    return load


@pytest.mark.parametrize("name", DECODERS)
def test_it_generates_what_the_model_does(loaded, name):
    model, ours = loaded(name)
    for lengths in ([4], [11, 3, 7]):
        prompt = padded(*lengths)
        wanted = model.generate(**prompt, max_new_tokens=12, do_sample=False)
        assert torch.equal(ours.generate(**prompt, max_new_tokens=12, do_sample=False), wanted)


def test_beams_are_the_models(loaded):
    model, ours = loaded("qwen3")
    prompt = padded(6, 2)
    settings = {"max_new_tokens": 10, "num_beams": 3, "do_sample": False}
    assert torch.equal(ours.generate(**prompt, **settings), model.generate(**prompt, **settings))


def test_buffers_are_made_known_to_the_runtime_once_and_again_when_they_grow(loaded):
    _, ours = loaded("qwen3")
    cache = ours.new_cache()
    cache.room = 4
    ours(input_ids=torch.tensor([[5, 6, 7]]), past_key_values=cache)
    known = cache.bound()
    ours(input_ids=torch.tensor([[8]]), past_key_values=cache)
    assert cache.bound() is known
    ours(input_ids=torch.tensor([[9]]), past_key_values=cache)
    assert cache.bound() is not known and cache.get_seq_length() == 5


def test_torch_computes_in_one_thread_between_steps_and_as_before_after_the_text(loaded):
    _, ours = loaded("qwen3")
    seen = []

    class Watch:
        def put(self, _):
            seen.append(torch.get_num_threads())

        def end(self):
            pass

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        ours.generate(**padded(4), max_new_tokens=3, do_sample=False, streamer=Watch())
        assert set(seen) == {1} and torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_a_step_writes_into_the_buffers_of_the_one_before(loaded):
    _, ours = loaded("qwen3")
    cache = ours.new_cache()
    cache.room = 20
    ours(input_ids=torch.tensor([[5, 6, 7]]), past_key_values=cache)
    places = [buffer.data_ptr() for buffer in cache.buffers]
    for token in range(10):
        ours(input_ids=torch.tensor([[token + 3]]), past_key_values=cache)
    assert [buffer.data_ptr() for buffer in cache.buffers] == places
    assert cache.get_seq_length() == 13 and cache.buffers[0].shape[2] == 20
    assert all(buffer[:, :, 12].any() and not buffer[:, :, 13:].any() for buffer in cache.buffers)


def test_memory_is_taken_for_some_tokens_at_once(loaded):
    """What is written to has its memory: a mark that is gone tells where."""
    cache = loaded("qwen3")[1].new_cache()
    cache.room = 400
    cache.prepare(1, 126)
    cache.add(torch.tensor([126]), 126)
    for buffer in cache.buffers:
        buffer[:] = 7
    for _ in range(2):
        cache.prepare(1, 1)
        cache.add_one()
    assert all(buffer.eq(7).all() for buffer in cache.buffers)
    cache.prepare(1, 1)
    for buffer in cache.buffers:
        assert buffer[:, :, :129].eq(7).all() and buffer[:, :, 129:256].eq(0).all() and buffer[:, :, 256:].eq(7).all()


def test_of_the_next_steps_masks_those_that_the_file_is_not_for_are_left_out(loaded):
    model, ours = loaded("qwen3")
    decoder, cache = ours._parts.decoder, ours.new_cache()
    cache.room = 100
    ours(input_ids=torch.randint(3, VOCABULARY, (1, 3)), past_key_values=cache)
    step = {"input_ids": torch.tensor([[5]]), "attention_mask": torch.ones(1, 4, dtype=torch.int64)}
    _, bound = decoder.run_bound({name: step[name] for name in decoder.free_inputs}, cache.bound())

    def masks(*lengths):
        return decoder.masks(bound, (np.ones((1, length), np.int64) for length in lengths))

    most = model.config.max_position_embeddings
    assert [mask.shape() for mask in masks(most - 1, most, most + 1, most)] == [[1, most - 1], [1, most]]
    with pytest.raises(ExportError, match=f"right for 1 to {most}"):
        masks(most + 1, most)


def test_a_cache_grows_where_nobody_said_how_long_the_text_is(loaded):
    model, ours = loaded("llama")
    ids = torch.randint(3, VOCABULARY, (1, 40))
    cache = ours.new_cache()
    cache.room = 8
    parts = [ours(input_ids=part, past_key_values=cache).logits for part in ids.split(7, dim=1)]
    torch.testing.assert_close(torch.cat(parts, 1), model(ids).logits, atol=1e-5, rtol=1e-4)


def test_rows_of_different_lengths_go_on_with_several_tokens(loaded):
    model, ours = loaded("qwen3")
    prompt = padded(6, 2)
    more = torch.randint(3, VOCABULARY, (2, 3))
    mask = torch.cat([prompt["attention_mask"], torch.ones_like(more)], 1)
    cache = ours.new_cache()
    first = ours(**prompt, past_key_values=cache).logits
    second = ours(input_ids=more, attention_mask=mask, past_key_values=cache).logits
    ids = torch.cat([prompt["input_ids"], more], 1)
    wanted = model(ids, attention_mask=mask, position_ids=(mask.cumsum(1) - 1).clamp(min=0)).logits
    there = mask.bool()
    torch.testing.assert_close(torch.cat([first, second], 1)[there], wanted[there], atol=1e-5, rtol=1e-4)


def test_assisted_generation_takes_tokens_back(loaded):
    model, ours = loaded("qwen3")
    prompt = padded(6)
    settings = {"max_new_tokens": 10, "do_sample": False, "prompt_lookup_num_tokens": 2}
    assert torch.equal(ours.generate(**prompt, **settings), model.generate(**prompt, **settings))


def test_a_text_goes_on_from_the_cache_of_an_earlier_one(loaded):
    model, ours = loaded("gemma3")
    prompt = padded(9)
    done = ours.generate(**prompt, max_new_tokens=5, do_sample=False, return_dict_in_generate=True)
    longer = torch.cat([done.sequences, torch.tensor([[9, 8, 7]])], 1)
    wanted = model.generate(longer, max_new_tokens=5, do_sample=False)
    assert torch.equal(ours.generate(longer, past_key_values=done.past_key_values, max_new_tokens=5), wanted)


def test_prompts_of_different_lengths_where_a_file_gives_the_last_logits_only(loaded):
    model, ours = loaded("qwen3", num_logits_to_keep=1)
    prompt = padded(6, 2)
    settings = {"max_new_tokens": 6, "do_sample": False}
    assert torch.equal(ours.generate(**prompt, **settings), model.generate(**prompt, **settings))


def test_padding_behind_tokens_that_a_window_would_count_is_refused(loaded):
    behind = {"input_ids": torch.tensor([[5, 6, 7, 0]]), "attention_mask": torch.tensor([[1, 1, 1, 0]])}
    with pytest.raises(modelport.ExportError, match="padding_side"):
        loaded("mistral")[1](**behind)
    model, ours = loaded("qwen3")  # which has no window
    got, want = ours(**behind).logits, model(**behind).logits
    torch.testing.assert_close(got[:, :3], want[:, :3], atol=1e-5, rtol=1e-4)


def test_a_text_longer_than_the_tables_of_positions_is_refused(loaded):
    _, ours = loaded("qwen3")
    with pytest.raises(modelport.ExportError, match="64"):
        ours(input_ids=torch.ones(1, 65, dtype=torch.int64))
