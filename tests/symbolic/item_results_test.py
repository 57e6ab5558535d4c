"""Lists with one tensor for each item as results, where how many items there are is open: `captured.run` gives the
model's own list, files the tensors of all items in one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import modelport
from modelport import ExportError
from modelport.base.item_lists import as_in_graph, items_of

Result = dict[str, Any]


def draw(*sizes: int) -> torch.Tensor:
    return torch.randn(sizes, generator=torch.Generator().manual_seed(sum(sizes)))


def of_one_size(x: torch.Tensor, _lengths: torch.Tensor) -> Result:
    return {"features": [row.cumsum(0) for row in x[:, :4]], "mean": x.mean()}


def of_own_sizes(x: torch.Tensor, lengths: torch.Tensor) -> Result:
    return {"features": [row[:n] * 2 for row, n in zip(x, lengths, strict=False)], "mean": x.mean()}


def pieces_of_a_split(x: torch.Tensor, lengths: torch.Tensor) -> Result:
    kept = x[torch.arange(9) < lengths[:, None]]
    return {"features": torch.split(kept, lengths.tolist()), "mean": kept.mean()}


def call(lengths: list[int]) -> dict[str, torch.Tensor]:
    return {"x": draw(len(lengths), 9, 3), "lengths": torch.tensor(lengths)}


class Model(torch.nn.Module):
    def __init__(self, loop: Callable[..., Result]):
        super().__init__()
        self.loop = loop

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> Result:
        return self.loop(x, lengths)


LOOPS = [of_one_size, of_own_sizes, pieces_of_a_split]
CALLS = ([2, 5, 3], [1, 7, 4, 6], [9, 9])


@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.__name__)
def test_a_run_gives_the_list_of_the_model_for_any_number_of_items(loop: Callable[..., Result]) -> None:
    model = Model(loop).eval()
    captured = modelport.capture(model, call(CALLS[0]), dynamic=True)
    for lengths in CALLS:
        want, got = model(**call(lengths)), captured.run(**call(lengths))
        assert type(got["features"]) is type(want["features"])
        torch.testing.assert_close(got, want)
        captured.check(model, call(lengths))


@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.__name__)
def test_an_onnx_file_gives_all_items_in_one_tensor(loop: Callable[..., Result], tmp_path: Path) -> None:
    model = Model(loop).eval()
    program = modelport.OnnxExporter().export(
        model, call(CALLS[0]), modelport.OnnxConfig(dynamic=True, join_lists=True)
    )
    loaded = modelport.load(program.save(tmp_path / "model.onnx"))
    for lengths in CALLS:
        found = loaded(**call(lengths))
        want = model(**call(lengths))["features"]
        rows = found["features.rows"] if "features.rows" in found else found["features"]
        torch.testing.assert_close(items_of(rows, found.get("features.sizes")), list(want))


@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.__name__)
def test_a_pt2_file_gives_all_items_in_one_tensor(loop: Callable[..., Result], tmp_path: Path) -> None:
    model = Model(loop).eval()
    path = (
        modelport.DynamoExporter()
        .export(model, call(CALLS[0]), modelport.DynamoConfig(dynamic=True, join_lists=True))
        .save(tmp_path / "model.pt2")
    )
    module = torch.export.load(path).module()
    for lengths in CALLS:
        found = module(**call(lengths))["features"]
        rows, sizes = (found, None) if isinstance(found, torch.Tensor) else (found["rows"], found["sizes"])
        torch.testing.assert_close(items_of(rows, sizes), list(model(**call(lengths))["features"]))


@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.__name__)
def test_files_have_an_output_for_each_item_of_the_example_unless_asked(loop: Callable[..., Result]) -> None:
    model = Model(loop).eval()
    program = modelport.DynamoExporter().export(model, call(CALLS[0]), modelport.DynamoConfig(dynamic=True))
    want = model(**call(CALLS[0]))
    got = program.module()(**call(CALLS[0]))
    assert type(got["features"]) is type(want["features"])
    torch.testing.assert_close(got, want)
    with pytest.raises(ExportError, match="the program takes 3"):
        program.captured.run(**call(CALLS[1]))


def test_a_list_of_one_tensor_is_no_list_of_items() -> None:
    def loop(x: torch.Tensor) -> list[torch.Tensor]:
        rows = [row * 2 for row in x]
        return [rows[0]]

    captured = modelport.capture(loop, (draw(3, 4),), dynamic=True)
    torch.testing.assert_close(captured.run(draw(3, 4)), loop(draw(3, 4)))


def test_what_a_model_gives_is_compared_as_a_file_gives_it() -> None:
    items = [draw(2, 3, 4), draw(1, 5, 4)]
    wanted = {"features.0": items[0], "features.1": items[1], "mean": draw(1)}
    sizes = torch.tensor([[2, 3], [1, 5]])
    found = as_in_graph(wanted, {"features.rows": torch.empty(0), "features.sizes": sizes, "mean": draw(1)})
    assert list(found) == ["mean", "features.rows", "features.sizes"]
    assert torch.equal(found["features.sizes"], sizes)
    for got, want in zip(items_of(found["features.rows"], sizes), items, strict=True):
        assert torch.equal(got, want)
