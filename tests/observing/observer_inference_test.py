"""What an InputObserver infers from its calls: arguments, dynamic shapes, relations between sizes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from observed_models import Decoder, Sum, a, ids, shapes

import modelport
from modelport import InputObserver

DYNAMIC = torch.export.Dim.DYNAMIC


def generated(**first: Any) -> InputObserver:
    """A prompt of 7 tokens, then two single ones."""
    model, observer = Decoder(), InputObserver()
    with observer(model):
        past = model(ids(1, 7), attention_mask=ids(1, 7), **first)["past"]
        past = model(ids(1, 1), attention_mask=ids(1, 8), past=past)["past"]
        model(ids(1, 1), attention_mask=ids(1, 9), past=past)
    return observer


def test_calls_by_position_give_tuples_and_others_dicts_in_the_order_of_the_signature() -> None:
    model, observer = Sum(), InputObserver()
    with observer(model):
        for length in (6, 7):
            model(a(5, length), a(1, length))
    assert observer.infer_dynamic_shapes() == ({1: DYNAMIC}, {1: DYNAMIC})
    assert shapes(observer.infer_arguments(1)) == {0: (5, 7), 1: (1, 7)}

    with observer(model):
        model(a(5, 8), z=a(5, 8), y=a(1, 8))
    assert list(observer.infer_dynamic_shapes()) == ["x", "y", "z"]
    assert shapes(observer.infer_arguments(0)) == {"x": (5, 6), "y": (1, 6), "z": (0, 8)}
    assert [tuple(tensor.shape) for tensor in observer.infer_arguments(2, flat=True)] == [(5, 8), (1, 8), (5, 8)]


def test_nested_arguments_give_nested_shapes() -> None:
    class Nested(torch.nn.Module):
        def forward(self, x, pair, named):
            return x + pair[0] + pair[1][0] + named["one"]

    model, observer = Nested(), InputObserver()
    with observer(model):
        for length in (6, 7):
            model(a(5, length), [a(1, length), (a(1, length),)], {"one": a(1, length)})
    one = {1: DYNAMIC}
    assert observer.infer_dynamic_shapes() == (one, [one, (one,)], {"one": one})


def test_arguments_of_args_and_kwargs_take_the_form_of_torch_export() -> None:
    class Rest(torch.nn.Module):
        def forward(self, first, *rest, **more):
            return first - rest[0] * rest[1] + more["x"]

    model, observer = Rest(), InputObserver()
    with observer(model):
        for rows in (5, 7):
            model(a(rows, 6), a(rows, 6), a(rows, 6), x=a(1, 6))
    one = {0: DYNAMIC}
    assert observer.infer_dynamic_shapes() == {"first": one, "rest": (one, one), "more": {"x": {}}}
    with pytest.raises(RuntimeError, match="as_args_kwargs=True"):
        observer.infer_arguments()
    args, kwargs = observer.infer_arguments(as_args_kwargs=True)
    assert len(args) == 3 and list(kwargs) == ["x"]


def test_the_batch_is_dynamic_where_asked_for() -> None:
    model, observer = Sum(), InputObserver()
    with observer(model):
        for length in (6, 7):
            model(a(5, length), y=a(1, length), z=a(5, length))
    both, one = {0: DYNAMIC, 1: DYNAMIC}, {1: DYNAMIC}
    assert observer.infer_dynamic_shapes() == {"x": one, "y": one, "z": one}
    assert observer.infer_dynamic_shapes({0, "z"}) == {"x": both, "y": one, "z": both}
    # One row for all is no batch.
    assert observer.infer_dynamic_shapes(True) == {"x": both, "y": one, "z": both}


def test_positions_with_components_first_have_the_batch_second() -> None:
    model, observer = Sum(), InputObserver()
    with observer(model):
        for length in (6, 7):
            model(a(2, length), y=a(3, 2, length))
    assert observer.infer_dynamic_shapes(True)["y"] == {1: DYNAMIC, 2: DYNAMIC}


def test_settings_are_kept_where_they_are_not_the_default() -> None:
    model, observer = Sum(), InputObserver()
    with observer(model):
        for length in (6, 7):
            model(x=a(5, length), y=None, times=3)
    assert observer.infer_dynamic_shapes() == {"x": {1: DYNAMIC}, "times": None}
    arguments = observer.infer_arguments()
    assert arguments["times"] == 3 and "y" not in arguments
    exported = torch.export.export(model, (), arguments, dynamic_shapes=observer.infer_dynamic_shapes())
    torch.testing.assert_close(exported.module()(**arguments), model(**arguments))


def test_settings_that_differ_between_calls_are_named_with_their_values() -> None:
    model, observer = Sum(), InputObserver()
    with observer(model):
        model(x=a(5, 6), times=2)
        model(x=a(5, 9), times=4)
    with pytest.raises(modelport.ExportError, match=r"times was 2 in call 0, 4 in call 1(.|\n)*calls=\[0\]"):
        observer.infer_arguments()
    observer.remove_inputs(["times"])
    assert shapes(observer.infer_arguments()) == {"x": (5, 9)}


def test_a_number_that_goes_with_a_size_does_not_count_as_differing() -> None:
    model, observer = Sum(), InputObserver()
    with observer(model):
        for length in (6, 9):
            model(x=a(5, length), times=length)
    assert observer.infer_arguments(0)["times"] == 6
    assert observer.infer_arguments(1)["times"] == 9


def test_arguments_that_never_occur_together_are_put_into_one_example() -> None:
    model, observer = Sum(), InputObserver()
    with observer(model):
        model(x=a(5, 6))
        model(y=a(3, 7))
    assert observer.infer_dynamic_shapes() == {"x": {0: DYNAMIC}, "y": {0: DYNAMIC}}
    assert shapes(observer.infer_arguments(0)) == {"x": (5, 6), "y": (0, 7)}
    assert shapes(observer.infer_arguments(1)) == {"x": (0, 6), "y": (3, 7)}
    assert shapes(observer.infer_arguments()) == {"x": (5, 6), "y": (3, 7)}


def test_the_example_of_a_generation_has_a_past_and_a_prompt_and_no_axis_of_one() -> None:
    observer = generated(pixel_values=a(1, 3, 8, 8))
    assert shapes(observer.infer_arguments(0))["past"] == (1, 2, 0, 4)
    assert shapes(observer.infer_arguments(1))["pixel_values"] == (0, 3, 8, 8)
    example = shapes(observer.infer_arguments(set_batch_dimension_for=True))
    batch, past = example["past"][0], example["past"][2]
    assert batch > 1 and past > 1 and len({batch, past, 7, past + 7}) == 4
    assert example == {
        "input_ids": (batch, 7),
        "attention_mask": (batch, past + 7),
        "pixel_values": (batch, 3, 8, 8),
        "past": (batch, 2, past, 4),
    }
    assert observer.infer_dynamic_shapes(True) == {
        "input_ids": {0: DYNAMIC, 1: DYNAMIC},
        "attention_mask": {0: DYNAMIC, 1: DYNAMIC},
        "pixel_values": {0: DYNAMIC},
        "past": {0: DYNAMIC, 2: DYNAMIC},
    }


def test_single_rows_become_more_for_an_export_with_a_batch() -> None:
    """Whichever is asked first: the arguments and the shapes go together."""
    for first in (True, None):
        model, observer = Sum(), InputObserver()
        with observer(model):
            for length in (6, 7):
                model(x=a(1, length))
        if first:
            assert shapes(observer.infer_arguments()) == {"x": (2, 7)}
            assert observer.infer_dynamic_shapes() == {"x": {0: DYNAMIC, 1: DYNAMIC}}
        else:
            assert observer.infer_dynamic_shapes() == {"x": {1: DYNAMIC}}
            assert shapes(observer.infer_arguments()) == {"x": (1, 7)}
            assert shapes(observer.infer_arguments(set_batch_dimension_for=True)) == {"x": (2, 7)}


def test_the_mask_of_the_example_is_that_of_the_past_and_then_that_of_the_prompt() -> None:
    observer = generated()
    mask = observer.infer_arguments()["attention_mask"][:1]
    torch.testing.assert_close(mask[:, -7:], observer.info.inputs[0].tensors["attention_mask"])
    past = mask.shape[1] - 7
    torch.testing.assert_close(mask[:, :past], observer.info.inputs[2].tensors["attention_mask"][:, :past])


def test_relations_between_sizes_are_found_and_named() -> None:
    observer = generated(pixel_values=a(1, 3, 8, 8))
    assert observer.infer_axes(True) == {
        "batch_size": [1, 1, 1],
        "sequence_length": [7, 1, 1],
        "total_sequence_length": [7, 8, 9],
        "pixel_values_0": [1, 0, 0],
        "past_sequence_length": [0, 7, 8],
    }
    relations = [str(relation) for relation in observer.infer_relations()]
    assert relations == ["total_sequence_length == past_sequence_length + sequence_length"]


def test_a_multiple_and_a_window_are_relations_too() -> None:
    class Any3(torch.nn.Module):
        def forward(self, x, y, z):
            return x

    model, observer = Any3(), InputObserver()
    with observer(model, store_n_calls=4):
        for length in (2, 4, 9, 12):
            model(x=a(3, length), y=a(3, 1, 5 * length), z=a(3, 1, min(length, 6)))
    relations = {str(relation) for relation in observer.infer_relations()}
    assert relations == {"y_2 == 5 * x_1", "z_2 == min(x_1, 6)"}


def test_a_value_for_missing_arguments_is_taken_as_it_is() -> None:
    for keyword in ("missing", "value_if_missing"):
        model, observer = Decoder(), InputObserver(**{keyword: {"pixel_values": torch.full((2, 3, 8, 8), 7.0)}})
        with observer(model):
            model(ids(1, 7), pixel_values=a(1, 3, 8, 8))
            model(ids(1, 1))
        torch.testing.assert_close(observer.infer_arguments(1)["pixel_values"], torch.full((2, 3, 8, 8), 7.0))
        assert observer.infer_dynamic_shapes()["pixel_values"] == {0: DYNAMIC}

    observer = InputObserver(missing={"pixels": a(1)})
    with observer(Decoder()) as same:
        same._model(ids(1, 7))
    with pytest.raises(modelport.ExportError, match=r"pixels.*does not take"):
        observer.infer_arguments()


def test_an_argument_may_hold_more_in_one_call_than_in_another() -> None:
    class First(torch.nn.Module):
        def forward(self, parts):
            return parts[0]

    model, observer = First(), InputObserver()
    with observer(model):
        model([a(2, 5)])
        model([a(2, 6), a(3, 4)])
    assert observer.infer_dynamic_shapes() == ([{1: DYNAMIC}, {0: DYNAMIC}],)
    assert [tuple(part.shape) for part in observer.infer_arguments(0)[0]] == [(2, 5), (0, 4)]


def test_a_number_of_axes_that_changes_is_an_error() -> None:
    model, observer = Sum(), InputObserver()
    with observer(model):
        model(a(2, 3))
        model(a(3))
    with pytest.raises(modelport.ExportError, match=r"x has 2 axes in call 0 and 1 axes in call 1(.|\n)*calls=\[1\]"):
        observer.infer_dynamic_shapes()


def test_arguments_from_outside_are_completed() -> None:
    model, observer = Sum(), InputObserver()
    with observer(model):
        for length in (6, 7):
            model(a(5, length), a(1, length), z=a(5, length))
    assert shapes(observer.infer_arguments({"z": a(5, 9)})) == {"x": (5, 0), "y": (1, 0), "z": (5, 9)}
    assert shapes(observer.infer_arguments((a(5, 9), a(1, 9)))) == {"x": (5, 9), "y": (1, 9), "z": (5, 0)}


def test_removed_inputs_are_forgotten_also_those_given_by_position() -> None:
    model, observer = Sum(), InputObserver()
    with observer(model):
        for length in (6, 7):
            model(a(5, length), a(1, length), a(5, length))
    observer.remove_inputs(["y"])
    args, kwargs = observer.infer_arguments(0, as_args_kwargs=True)
    assert len(args) == 1 and list(kwargs) == ["z"]
    with pytest.raises(modelport.ExportError, match=r"no call has an argument 'y'(.|\n)*x, z"):
        observer.remove_inputs(["y"])
