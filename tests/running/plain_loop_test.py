"""Our loop of `generate` next to transformers': the same tokens, the same calls of what a user hands over."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tiny_decoders import exported, made, padded
from transformers import LogitsProcessor, LogitsProcessorList, StoppingCriteria, StoppingCriteriaList

import modelport
from modelport import ExportError
from modelport.running import plain_loop
from modelport.runtimes.bound_values import BoundValues


@pytest.fixture(scope="module", params=["in place", "growing"])
def loaded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A cache that is written in place, and one that grows, whose file takes positions too."""
    folder = tmp_path_factory.mktemp("model")
    operators = "onnxruntime" if request.param == "in place" else "standard"
    exported(made("qwen3"), operators, last_logits=True).save(folder)
    return modelport.load(folder)


@pytest.fixture
def theirs(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs a function with transformers' loop."""

    def run(call: Any) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(plain_loop, "fits", lambda *_args: False)
            return call()

    return run


@pytest.fixture(autouse=True)
def ours_is_taken(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A test in which nobody took our loop shows nothing."""
    calls, plain = [], plain_loop.generated
    monkeypatch.setattr(plain_loop, "generated", lambda *args: calls.append(1) or plain(*args))
    yield
    assert calls


@pytest.mark.parametrize(
    "settings",
    [
        {"do_sample": False},
        {"do_sample": True, "temperature": 0.7, "top_k": 20},
        {"do_sample": False, "repetition_penalty": 1.3, "min_new_tokens": 6},
        {"do_sample": True, "num_return_sequences": 3},
    ],
    ids=str,
)
@pytest.mark.parametrize("lengths", [(6,), (7, 2, 5)], ids=str)
def test_tokens_are_those_of_transformers_loop(
    loaded: Any, theirs: Any, settings: dict[str, Any], lengths: tuple[int, ...]
) -> None:
    def told() -> torch.Tensor:
        torch.manual_seed(5)
        return loaded.generate(**padded(*lengths), **settings, max_new_tokens=12)

    assert torch.equal(told(), theirs(told))


def test_a_text_without_a_mask_and_one_longer_than_the_first_room(loaded: Any, theirs: Any) -> None:
    def told() -> torch.Tensor:
        return loaded.generate(padded(3)["input_ids"], max_new_tokens=50, do_sample=False)

    assert torch.equal(told(), theirs(told))


def test_rows_end_at_the_end_token_and_go_on_with_padding(loaded: Any, theirs: Any) -> None:
    plain = loaded.generate(**padded(6, 4), max_new_tokens=12, do_sample=False)
    ends = int(plain[0, 6 + 3])

    def told() -> torch.Tensor:
        return loaded.generate(**padded(6, 4), max_new_tokens=12, do_sample=False, eos_token_id=ends, pad_token_id=1)

    got = told()
    assert torch.equal(got, theirs(told)) and 1 in got[0, 6:].tolist()


class _Streamer:
    def __init__(self) -> None:
        self.got: list[list[int]] = []

    def put(self, tokens: torch.Tensor) -> None:
        self.got.append(tokens.flatten().tolist())

    def end(self) -> None:
        self.got.append([])


def test_a_streamer_gets_the_prompt_each_token_and_the_end(loaded: Any, theirs: Any) -> None:
    def streamed() -> list[list[int]]:
        streamer = _Streamer()
        loaded.generate(**padded(5), max_new_tokens=6, do_sample=False, streamer=streamer)
        return streamer.got

    got = streamed()
    assert got == theirs(streamed) and len(got) == 1 + 6 + 1


class _Keeps(LogitsProcessor):
    def __init__(self) -> None:
        self.kept: list[torch.Tensor] = []

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        self.kept.append(scores)
        return scores


def test_scores_that_a_processor_keeps_stay_what_they_were(loaded: Any, theirs: Any) -> None:
    def kept() -> torch.Tensor:
        processor = _Keeps()
        processors = LogitsProcessorList([processor])
        loaded.generate(**padded(5), max_new_tokens=6, do_sample=False, logits_processor=processors)
        return torch.stack(processor.kept)

    torch.testing.assert_close(kept(), theirs(kept), atol=1e-6, rtol=1e-6)


class _Asks(StoppingCriteria):
    """Has the model read something else between two steps."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def __call__(self, input_ids: torch.Tensor, scores: Any, **_more: Any) -> torch.Tensor:
        self.model(input_ids=torch.tensor([[9, 8, 7]]))
        return torch.full((len(input_ids),), input_ids.shape[1] > 12)


def test_a_model_that_is_called_between_two_steps_goes_on_where_it_was(loaded: Any, theirs: Any) -> None:
    def told() -> torch.Tensor:
        criteria = StoppingCriteriaList([_Asks(loaded)])
        return loaded.generate(**padded(5), max_new_tokens=20, do_sample=False, stopping_criteria=criteria)

    got = told()
    assert torch.equal(got, theirs(told)) and got.shape[1] == 13


def test_a_cache_that_a_caller_has_is_gone_on_with(loaded: Any, theirs: Any) -> None:
    def told() -> torch.Tensor:
        cache, prompt = loaded.new_cache(), padded(5)
        first = loaded.generate(**prompt, past_key_values=cache, max_new_tokens=4, do_sample=False)
        more = torch.cat([first, torch.tensor([[11, 12]])], dim=1)
        return loaded.generate(more, past_key_values=cache, max_new_tokens=5, do_sample=False)

    assert torch.equal(told(), theirs(told))


@pytest.mark.parametrize("lengths", [(5,), (5, 3)], ids=str)
def test_a_text_may_outgrow_its_memory_and_ids_that_somebody_keeps_stay_what_they_were(
    loaded: Any, theirs: Any, monkeypatch: pytest.MonkeyPatch, lengths: tuple[int, ...]
) -> None:
    class Keeps(StoppingCriteria):
        def __init__(self) -> None:
            self.kept: list[torch.Tensor] = []

        def __call__(self, input_ids: torch.Tensor, scores: Any, **_more: Any) -> torch.Tensor:
            self.kept.append(input_ids)
            return torch.zeros(len(input_ids), dtype=torch.bool)

    def kept() -> list[list[Any]]:
        keeps = Keeps()
        settings = {"max_new_tokens": 30, "do_sample": False, "stopping_criteria": StoppingCriteriaList([keeps])}
        prompt = padded(*lengths)
        before = prompt["input_ids"].clone()
        told = loaded.generate(**prompt, **settings)
        assert torch.equal(prompt["input_ids"], before)
        return [ids.tolist() for ids in (*keeps.kept, told)]

    monkeypatch.setattr(plain_loop, "_FIRST_TOKENS", 2)
    got = kept()
    assert got == theirs(kept) and len(got) == 31


def test_a_text_beyond_the_models_positions_is_warned_of(loaded: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers.generation import stopping_criteria

    said: list[str] = []
    monkeypatch.setattr(stopping_criteria.logger, "warning_once", said.append)
    monkeypatch.setattr(loaded.config, "max_position_embeddings", 8)
    assert loaded.generate(**padded(5), max_new_tokens=6, do_sample=False).shape[1] == 11
    assert said and "maximum length (8)" in said[0]


def test_what_a_file_asks_of_data_is_looked_at_in_every_step(loaded: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def truths(_bound: BoundValues, start: int) -> list[bool]:
        asked.append(start)
        return [len(asked) < 3]

    monkeypatch.setattr(BoundValues, "truths", truths)
    if plain_loop.can_step(loaded._parts.decoder):
        with pytest.raises(ExportError, match="another case"):
            loaded.generate(**padded(5), max_new_tokens=20, do_sample=False)
        assert len(asked) == 3
    else:  # binds nothing
        loaded.generate(**padded(5), max_new_tokens=20, do_sample=False)
        assert not asked
