"""Models whose state is no cache of transformers, or that read the prompt by other code than the tokens after it."""

from __future__ import annotations

import functools
import tempfile
from typing import Any

import pytest
import torch
import transformers
from tiny_models import lively
from zoo import ROWS

import modelport
from modelport import OnnxExporter
from modelport.patches.recurrences import mlstm_in_one_chunk, rwkv_attention

SETTINGS = {"max_new_tokens": 8, "min_new_tokens": 8, "do_sample": False}


class Exported:
    """A row of the zoo, its parts, and the folder of them as it is loaded."""

    def __init__(self, name: str, **changes: Any):
        row = next(row for row in ROWS if row.name == name)
        cls, config = getattr(transformers, row.model_class), row.make_config()
        for key, value in changes.items():
            setattr(config, key, value)
        torch.manual_seed(7)
        self.model = lively(cls(config).eval(), 4)
        self.parts = OnnxExporter().export_for_generation(self.model, {"input_ids": prompt(2, 7)["input_ids"]})
        with tempfile.TemporaryDirectory() as folder:
            self.loaded = modelport.load(self.parts.save(folder))

    def generate_the_same(self, given: dict[str, torch.Tensor]) -> bool:
        return torch.equal(self.loaded.generate(**given, **SETTINGS), self.model.generate(**given, **SETTINGS))


exported = functools.cache(Exported)


def prompt(batch: int, length: int, padded: slice | None = None) -> dict[str, torch.Tensor]:
    ids = torch.randint(3, 90, (batch, length), generator=torch.Generator().manual_seed(length))
    mask = torch.ones_like(ids)
    if padded is not None:
        mask[0, padded] = 0
    return {"input_ids": ids, "attention_mask": mask}


@pytest.mark.parametrize("name", ["rwkv", "xlstm", "xlnet", "recurrent_gemma", "fsmt", "prophetnet"])
@pytest.mark.parametrize("batch", [1, 3])
def test_prompts_of_any_length_are_continued(name: str, batch: int) -> None:
    for length in (2, 26):
        assert exported(name).generate_the_same(prompt(batch, length))


@pytest.mark.parametrize("name", ["mamba", "mamba2"])
def test_of_a_state_that_is_as_long_whatever_was_read_only_the_rows_change(name: str) -> None:
    later = exported(name).parts["decoder_with_past_model"]
    states = [value for value in later.model_proto.graph.input if value.name not in ("input_ids", "attention_mask")]
    assert states
    for state in states:
        rows, *sizes = state.type.tensor_type.shape.dim
        assert rows.dim_param and all(size.dim_value > 0 for size in sizes)


@pytest.mark.parametrize("name", ["mamba", "mamba2"])
def test_a_prompt_may_be_shorter_than_a_convolution_is_wide(name: str) -> None:
    for length in (1, 3):
        assert exported(name).generate_the_same(prompt(2, length))


def test_a_state_that_is_a_list_of_tensors_stays_one() -> None:
    both = exported("rwkv")
    assert list(both.parts) == ["decoder_model", "decoder_with_past_model"]
    assert both.parts["decoder_with_past_model"].input_names[-5:] == [f"past_state.{i}" for i in range(5)]
    first = both.loaded(**prompt(1, 6))
    assert isinstance(first.state, list)
    more = torch.tensor([[11]])
    with torch.no_grad():
        state = both.model(**prompt(1, 6)).state
        want = both.model(more, state=state).logits
    torch.testing.assert_close(both.loaded(more, state=first.state).logits, want, atol=1e-4, rtol=1e-4)


def test_the_models_own_code_may_change_its_state_between_the_steps() -> None:
    both = exported("xlnet")  # which takes two tokens off, and reads them again
    given = prompt(2, 9)
    beams = SETTINGS | {"num_beams": 3}
    assert torch.equal(both.loaded.generate(**given, **beams), both.model.generate(**given, **beams))


def test_a_state_in_an_object_is_read_by_one_graph() -> None:
    program = exported("xlstm").parts["model"]
    assert {"past_rnn_state.0.0", "past_rnn_state.1.2"} < set(program.input_names)
    assert {"present_rnn_state.0.0", "present_rnn_state.1.2"} < set(program.output_names)


def test_states_in_modules_are_inputs_and_outputs() -> None:
    both = exported("recurrent_gemma")
    assert {"past_conv1d_state.0", "past_recurrent_states.0"} < set(both.parts["decoder_with_past_model"].input_names)
    assert {"present_conv1d_state.0", "present_recurrent_states.0"} < set(both.parts["decoder_model"].output_names)


def test_a_model_that_keeps_states_in_its_modules_is_left_without_them() -> None:
    model = Exported("recurrent_gemma").model
    block = model.model.layers[0].temporal_block
    assert block.conv1d_state is None and block.rg_lru.recurrent_states is None


def test_a_window_that_only_the_cache_keeps_to_is_kept_to() -> None:
    both = exported("recurrent_gemma", sliding_window=16, attention_window_size=16)
    for length in (5, 12, 24):
        assert both.generate_the_same(prompt(2, length))


@pytest.mark.parametrize("name", ["fsmt", "prophetnet"])
def test_an_encoder_decoder_whose_steps_are_no_case_of_its_first_has_two_decoders(name: str) -> None:
    parts = exported(name).parts
    assert list(parts) == ["encoder_model", "decoder_model", "decoder_with_past_model"]
    later = parts["decoder_with_past_model"]
    assert "past_key_values.0.encoder.key" in later.input_names
    assert not any(".encoder." in output for output in later.output_names)  # what crosses does not change


def test_files_take_a_mask_though_the_example_has_none() -> None:
    both = exported("fsmt")
    start = {"decoder_input_ids": torch.tensor([[2], [2]])}
    padded, whole = prompt(2, 9, slice(3, None)) | start, prompt(2, 9) | start
    with torch.no_grad():
        want, other = both.model(**padded).logits, both.model(**whole).logits
    torch.testing.assert_close(both.loaded(**padded).logits, want, atol=1e-4, rtol=1e-4)
    assert not torch.allclose(want, other, atol=1e-3)


@pytest.mark.parametrize("length", [1, 2, 9])
@pytest.mark.parametrize("with_state", [False, True])
def test_an_average_over_time_needs_no_loop(length: int, with_state: bool) -> None:
    from transformers.models.rwkv.modeling_rwkv import rwkv_linear_attention_cpu

    torch.manual_seed(length)
    key, value, decay, first = 3 * torch.randn(3, length, 8), torch.randn(3, length, 8), torch.randn(8), torch.randn(8)
    state = [torch.randn(3, 8), torch.rand(3, 8), torch.randn(3, 8)] if with_state else None
    want = rwkv_linear_attention_cpu(decay, first, key, value, state, True)
    got = rwkv_attention(rwkv_linear_attention_cpu)(decay, first, key, value, state, True)
    torch.testing.assert_close(got, want, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("length", [1, 4, 9])
@pytest.mark.parametrize("with_state", [False, True])
def test_chunks_of_a_text_are_one_chunk(length: int, with_state: bool) -> None:
    from transformers.models.xlstm.modeling_xlstm import xLSTMBackend

    torch.manual_seed(length)
    backend = xLSTMBackend(transformers.xLSTMConfig(hidden_size=128, num_heads=4, chunk_size=4))
    query, key, value = (torch.randn(2, 4, length, size) for size in (16, 16, 32))
    gates = [2 * torch.randn(2, 4, length) for _ in range(2)]
    state = [torch.randn(2, 4, 16, 32), torch.randn(2, 4, 16), torch.randn(2, 4, 1)] if with_state else []
    want = backend(query, key, value, *gates, *state)
    got = mlstm_in_one_chunk(xLSTMBackend.forward)(backend, query, key, value, *gates, *state)
    torch.testing.assert_close(got, want, atol=1e-4, rtol=1e-4)
