"""InputObserver while it observes: what is stored of which calls, and what of that is kept in memory."""

from __future__ import annotations

import threading
from contextlib import ExitStack

import pytest
import torch
from observed_models import Decoder, Sum, a, shapes
from tiny_models import tiny
from transformers import LlamaForCausalLM

import modelport
from modelport import InputObserver

DYNAMIC = torch.export.Dim.DYNAMIC


@pytest.fixture
def tiny_llama() -> LlamaForCausalLM:
    return tiny("llama", vocab_size=128, hidden_size=128, num_key_value_heads=4)


# What is stored


def test_the_first_calls_are_stored_with_their_outputs_and_times() -> None:
    model, observer = Sum(), InputObserver()
    inputs = [(a(5, 6), a(1, 6)), (a(7, 7), a(1, 7)), (a(7, 8), a(1, 8)), (a(7, 9), a(1, 9))]
    with observer(model):
        outputs = [model(*pair) for pair in inputs]
    assert observer.num_obs() == len(observer.info) == 3
    for got, want in zip(observer.info.flat_outputs, outputs, strict=False):
        torch.testing.assert_close(got, [want])
    assert all(seconds > 0 for seconds in observer.info.latencies)
    assert "x: [5, 6]" in observer.info.inputs[0].str_obs()


def test_a_second_with_stores_as_many_calls_again() -> None:
    model, observer = Sum(), InputObserver()
    for _ in range(2):
        with observer(model, store_n_calls=2):
            for length in range(4):
                model(a(2, length + 1))
    assert [call.flat_list[0].shape[1] for call in observer.info.inputs] == [1, 2, 1, 2]


def test_the_method_is_as_before_even_after_an_exception() -> None:
    model, observer = Sum(), InputObserver()
    with pytest.raises(ZeroDivisionError), observer(model):
        assert "forward" in vars(model)
        raise ZeroDivisionError
    assert "forward" not in vars(model)

    model.forward = own = lambda x: 2 * x
    with observer.__class__()(model):
        model(a(2))
    assert model.forward is own


def test_a_call_that_fails_is_not_stored_and_leaves_its_place_to_another() -> None:
    model, observer = Sum(), InputObserver()
    with observer(model, store_n_calls=1):
        with pytest.raises(RuntimeError):
            model(a(2, 3), a(4, 5))
        assert observer.num_obs() == 0
        model(a(2, 3))
    assert shapes(observer.info.inputs[0].tensors) == {"x": (2, 3)}


def test_two_observers_of_one_method_may_leave_in_any_order() -> None:
    model, first, second = Sum(), InputObserver(), InputObserver()
    early, late = ExitStack(), ExitStack()
    early.enter_context(first(model))
    late.enter_context(second(model))
    model(a(1))
    early.close()
    model(a(2))
    late.close()
    model(a(3))
    assert (first.num_obs(), second.num_obs()) == (1, 2)
    assert "forward" not in vars(model)


def test_another_method_than_forward_is_observed() -> None:
    class Two(torch.nn.Module):
        def part(self, w):
            return w.abs()

        def forward(self, x, y):
            return x + self.part(y)

    model, whole, part = Two(), InputObserver(), InputObserver()
    with whole(model), part(model, method_name="part"):
        for length in (6, 7):
            model(a(5, length), a(1, length))
    assert part.infer_dynamic_shapes() == ({1: DYNAMIC},)
    assert whole.infer_dynamic_shapes() == ({1: DYNAMIC}, {1: DYNAMIC})


def test_a_method_that_is_not_there_is_an_error_that_names_one() -> None:
    with (
        pytest.raises(modelport.ExportError, match=r"no method 'fordward'.*\n.*'forward'"),
        InputObserver()(Sum(), method_name="fordward"),
    ):
        pass


def test_calls_from_several_threads_are_stored_whole() -> None:
    model, observer = Sum(), InputObserver()
    with observer(model, store_n_calls=16):
        threads = [threading.Thread(target=lambda n=n: model(a(n, 2), a(n, 2))) for n in range(1, 33)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert observer.num_obs() == 16
    for call, outputs in zip(observer.info.inputs, observer.info.flat_outputs, strict=True):
        torch.testing.assert_close(sum(call.flat_list), outputs[0])


def test_nothing_is_inferred_of_nothing() -> None:
    observer = InputObserver()
    with pytest.raises(RuntimeError, match="no inputs were captured"):
        observer.infer_dynamic_shapes()
    with observer(Sum()):
        pass
    with pytest.raises(RuntimeError, match=r"Sum.forward was not called meanwhile(.|\n)*model.base_model"):
        observer.infer_arguments()


# What is kept in memory


def memory(observer: InputObserver) -> int:
    """Bytes of all tensors that are stored, each storage once."""
    tensors = [t for call in observer.info.inputs for t in call.flat_list]
    tensors += [t for outputs in observer.info.flat_outputs for t in outputs]
    storages = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors}
    return sum(storages.values())


def test_what_repeats_is_stored_once() -> None:
    model, observer, states = Sum(), InputObserver(), a(100, 100)
    with observer(model):
        for length in (1, 2, 3):
            model(x=states, y=torch.zeros(()), times=1 + 0 * length)
    assert memory(observer) <= 2 * states.numel() * 4 + 100


def test_the_caches_of_all_calls_are_parts_of_the_last_one() -> None:
    model, observer = Decoder(), InputObserver()
    with observer(model, store_n_calls=8):
        past = None
        for length in (100, 1, 1, 1, 1, 1, 1, 1):
            past = model(torch.arange(length)[None], past=past)["past"]
    assert memory(observer) < 1.3 * past.numel() * 4
    torch.testing.assert_close(observer.info.inputs[1].tensors["past"], past[:, :, :100])


def test_a_generation_costs_one_copy_of_its_cache(tiny_llama: LlamaForCausalLM) -> None:
    observer = InputObserver()
    with observer(tiny_llama, store_n_calls=8):
        prompt = torch.arange(64)[None]
        result = tiny_llama.generate(prompt, max_new_tokens=8, min_new_tokens=8, return_dict_in_generate=True)
    cache = sum(tensor.nbytes for layer in result.past_key_values.layers for tensor in (layer.keys, layer.values))
    assert observer.num_obs() == 8
    assert memory(observer) < 1.2 * cache


def test_removing_inputs_copies_nothing() -> None:
    model, observer = Sum(), InputObserver()
    with observer(model):
        model(x=a(100), y=a(100))
    before = observer.info.inputs[0].tensors["x"].data_ptr()
    observer.remove_inputs(["y"])
    assert observer.info.inputs[0].tensors["x"].data_ptr() == before


def test_what_the_model_writes_into_its_inputs_does_not_reach_the_store() -> None:
    class Writer(torch.nn.Module):
        def forward(self, x, memory):
            memory.add_(x)
            return memory

    model, observer, held = Writer(), InputObserver(), torch.zeros(3)
    with observer(model):
        for _ in range(3):
            model(torch.ones(3), held)
    values = [call.tensors["memory"].tolist() for call in observer.info.inputs]
    assert values == [[0.0] * 3, [1.0] * 3, [2.0] * 3]
    assert [outputs[0].tolist() for outputs in observer.info.flat_outputs] == [[1.0] * 3, [2.0] * 3, [3.0] * 3]
    model(*observer.infer_arguments(0))
    assert observer.info.inputs[0].tensors["memory"].tolist() == [0.0] * 3


def test_calls_in_inference_mode_are_stored_for_use_outside_of_it() -> None:
    model, observer = Sum(), InputObserver()
    with torch.inference_mode(), observer(model):
        model(a(2, 3))
    assert not observer.infer_arguments()[0].is_inference()
