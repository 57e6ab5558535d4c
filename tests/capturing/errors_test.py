"""Bad input: each gets an error with what is wrong, the model's line, and a way out."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
import torch
from tiny_models import tiny
from zoo import ROWS

import modelport


@pytest.fixture(scope="module")
def bert() -> Any:
    return tiny("bert", max_position_embeddings=64)


def ids() -> torch.Tensor:
    return torch.randint(0, 99, (3, 7))


def message_of(model: Any, inputs: Any, **options: Any) -> str:
    with pytest.raises(modelport.ExportError) as error:
        modelport.capture(model, inputs, **options)
    assert "way out" in str(error.value)
    return str(error.value)


def test_a_tensor_of_the_wrong_type_names_the_line_of_the_model(bert: Any) -> None:
    text = message_of(bert, {"input_ids": ids().float()})
    assert "E0205" in text and "modeling_bert.py" in text


def test_labels_are_refused(bert: Any) -> None:
    assert "the inputs have 'labels'" in message_of(bert, {"input_ids": ids(), "labels": ids()})


def test_a_model_in_training_mode_is_refused(bert: Any) -> None:
    bert.train()
    try:
        text = message_of(bert, {"input_ids": ids()})
    finally:
        bert.eval()
    assert "training mode" in text and "model.eval()" in text


def test_parts_in_training_mode_are_refused_by_name_whoever_exports(bert: Any) -> None:
    path = "encoder.layer.0"
    bert.get_submodule(path).attention.train()
    inputs = {"input_ids": ids()}
    try:
        texts = [message_of(bert, inputs)]
        for exporter in (modelport.DynamoExporter(), modelport.OnnxExporter()):
            with pytest.raises(modelport.ExportError) as error:
                exporter.export(bert, dict(inputs))
            texts.append(str(error.value))
    finally:
        bert.eval()
    for text in texts:
        assert f"parts of the model are ({path}.attention, {path}.attention.self, " in text
        assert " more) in training mode" in text and "model.eval()" in text


def test_an_export_for_generation_refuses_parts_in_training_mode_and_does_not_put_them_right_in_silence() -> None:
    row = next(row for row in ROWS if str(row) == "gpt2")
    model, inputs = row.build()
    model.transformer.drop.train()
    with pytest.raises(modelport.ExportError, match=r"parts of the model are \(transformer.drop\) in training mode"):
        modelport.OnnxExporter().export_for_generation(model, inputs)
    assert model.transformer.drop.training


def test_an_unknown_input_is_refused_with_the_names_that_exist() -> None:
    text = message_of(torch.nn.Linear(4, 4).eval(), {"input": torch.ones(1, 4), "inputs_ids": ids()})
    assert "takes no input 'inputs_ids'" in text and "it takes: input" in text


def test_an_unknown_input_of_a_captured_graph_is_refused(bert: Any) -> None:
    captured = modelport.capture(bert, {"input_ids": ids()}, dynamic=True)
    with pytest.raises(modelport.ExportError, match="takes no input 'pixel_values'"):
        captured.run(input_ids=ids(), pixel_values=ids())
    with pytest.raises(modelport.ExportError, match="input input_ids is missing"):
        captured.run()


def test_an_input_of_another_dtype_is_refused_by_the_graph(bert: Any) -> None:
    captured = modelport.capture(bert, {"input_ids": ids()}, dynamic=True)
    with pytest.raises(modelport.ExportError, match=r"input input_ids is f32 with 2 axes, the graph takes i64"):
        captured.run(input_ids=ids().float())


def test_a_size_that_the_graph_does_not_take_is_refused_with_a_way_out(bert: Any) -> None:
    captured = modelport.capture(bert, {"input_ids": ids()})
    with pytest.raises(modelport.ExportError, match="has size 9 on axis 1, and the program takes 7") as error:
        captured.run(input_ids=torch.randint(0, 99, (3, 9)))
    assert "dynamic=True" in str(error.value)


def test_a_loop_over_data_is_caught_when_the_data_changes() -> None:
    def function(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
        for _ in range(n.item()):
            x = x * 2
        return x

    captured = modelport.capture(function, (torch.ones(3), torch.tensor(3)))
    torch.testing.assert_close(captured.run(torch.ones(3), torch.tensor(3)), torch.full((3,), 8.0))
    with pytest.raises(modelport.ExportError, match="E0304") as error:
        captured.run(torch.ones(3), torch.tensor(2))
    assert "errors_test.py" in str(error.value)


def test_an_operator_of_a_library_without_a_meta_kernel_is_an_error_with_the_line() -> None:
    library = torch.library.Library("modelport_test", "DEF")
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", lambda x: x * 2, "CPU")
    text = message_of(lambda x: torch.ops.modelport_test.twice(x), (torch.ones(3, 2),), dynamic=True)
    assert "E0201" in text and "modelport_test.twice" in text and "errors_test.py" in text and "register_fake" in text


def test_an_operator_of_a_library_with_a_meta_kernel_is_learned() -> None:
    library = torch.library.Library("modelport_test_meta", "DEF")
    library.define("rows_twice(Tensor x) -> Tensor")
    library.impl("rows_twice", lambda x: torch.cat([x, x]), "CPU")
    library.impl("rows_twice", lambda x: x.new_empty(2 * x.shape[0], x.shape[1]), "Meta")
    captured = modelport.capture(
        lambda x: torch.ops.modelport_test_meta.rows_twice(x) + 1, (torch.ones(3, 2),), dynamic=True
    )
    assert "f32[2*" in str(captured)
    assert captured.run(torch.zeros(5, 4)).shape == (10, 4)


def test_importing_the_package_does_not_import_torch() -> None:
    code = "import sys, modelport; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
