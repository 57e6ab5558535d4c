"""Buffers that one text leaves to the next: the same memory, nothing of the text, never while somebody reads them."""

from __future__ import annotations

import gc
from typing import Any

import pytest
import torch
from tiny_decoders import DECODERS, exported, made, padded

import modelport
from modelport.running.cache_buffers import LastBuffers

GREEDY = {"do_sample": False, "max_new_tokens": 8}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: Any) -> Any:
    found: dict[str, Any] = {}

    def folder(name: str) -> Any:
        if name not in found:
            model, path = made(name), tmp_path_factory.mktemp("model")
            exported(model).save(path)
            found[name] = model, path
        return found[name]

    return folder


@pytest.fixture
def both(folders: Any) -> Any:
    """The model, and its export, which has read no text yet."""
    model, path = folders("qwen3")
    return model, modelport.load(path)


def left_by(ours: Any) -> list[torch.Tensor]:
    gc.collect()
    (buffers,) = last_of(ours)._kept
    return buffers.tensors


def last_of(ours: Any) -> LastBuffers:
    return ours._parts.decoder._last


@pytest.mark.parametrize("name", DECODERS)
@pytest.mark.parametrize("lengths", [[7], [9, 2, 6]])
def test_nothing_of_a_text_gets_into_the_next(folders: Any, name: str, lengths: list[int]) -> None:
    """What is not a number would spread to all that it is read with."""
    model, path = folders(name)
    ours, longer, prompt = modelport.load(path), padded(*(n + 3 for n in lengths)), padded(*lengths)
    ours.generate(**longer, **GREEDY)
    memory = left_by(ours)
    for buffer in memory:
        taken = buffer if len(lengths) == 1 else buffer[:, :, last_of(ours)._kept[0]._taken :]
        taken.fill_(float("nan"))
    assert torch.equal(ours.generate(**prompt, **GREEDY), model.generate(**prompt, **GREEDY))
    assert [x.data_ptr() for x in left_by(ours)] == [x.data_ptr() for x in memory]


def test_a_longer_text_or_another_number_of_rows_gets_buffers_of_its_own(both: Any) -> None:
    model, ours = both
    for prompt, more in [(padded(4), 8), (padded(4), 30), (padded(4, 4), 8), (padded(12), 8), (padded(4), 2)]:
        settings = {"do_sample": False, "max_new_tokens": more}
        assert torch.equal(ours.generate(**prompt, **settings), model.generate(**prompt, **settings))
        assert left_by(ours)[0].shape[2] >= prompt["input_ids"].shape[1] + more - 1


def test_nothing_is_bound_anew_for_the_next_text(both: Any) -> None:
    _, ours = both
    ours.generate(**padded(6), **GREEDY)
    bound = ours._parts.decoder._file._bound
    ours.generate(**padded(3), **GREEDY)
    assert bound is not None and ours._parts.decoder._file._bound is bound


def test_a_cache_that_is_still_there_keeps_its_buffers(both: Any) -> None:
    model, ours = both
    done = ours.generate(**padded(6), **GREEDY, return_dict_in_generate=True)
    ours.generate(**padded(5), **GREEDY)
    longer = torch.cat([done.sequences, torch.tensor([[9, 8, 7]])], 1)
    got = ours.generate(longer, past_key_values=done.past_key_values, **GREEDY)
    assert torch.equal(got, model.generate(longer, **GREEDY))


def test_keys_and_values_that_somebody_was_given_stay_theirs(both: Any) -> None:
    _, ours = both
    cache = ours.new_cache()
    ours(**padded(6), past_key_values=cache)
    keys = cache.layers[0].keys
    before = keys.clone()
    del cache
    gc.collect()
    ours.generate(**padded(5), **GREEDY)
    assert before.any() and torch.equal(keys, before)


def test_two_texts_at_once_have_buffers_of_their_own(both: Any) -> None:
    _, ours = both
    ours.generate(**padded(6), **GREEDY)
    first, second = ours.new_cache(), ours.new_cache()
    for cache in (first, second):
        ours(**padded(3), past_key_values=cache)
    assert first.buffers[0].data_ptr() != second.buffers[0].data_ptr()
