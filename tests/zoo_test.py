"""Every row of the zoo: captured, interpreted at two sizes that the capture never saw, saved and reloaded as `.pt2`."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from expected_failures import EXPECTED
from zoo import ROWS

import modelport

ATOL = RTOL = 1e-3  # of the values that eager PyTorch gives; weights are random, activations of the order of one


@pytest.fixture(autouse=True)
def one_thread() -> Any:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def assert_same(got: Any, want: Any) -> None:
    got, want = modelport.get_leaf_tensors(got), modelport.get_leaf_tensors(want)
    assert len(got) == len(want)
    for (name, g), w in zip(got.items(), want.values(), strict=True):
        assert g.dtype == w.dtype, name
        torch.testing.assert_close(g, w, atol=ATOL, rtol=RTOL, equal_nan=True, msg=lambda m, name=name: f"{name}: {m}")


def eager(model: torch.nn.Module, inputs: dict[str, Any]) -> Any:
    torch.manual_seed(0)
    with torch.no_grad():
        return model(**inputs)


def seeded(run: Any, inputs: dict[str, Any]) -> Any:
    torch.manual_seed(0)
    with torch.no_grad():
        return run(**inputs)


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_the_graph_and_the_archive_compute_what_the_model_computes(row: Any, tmp_path: Any, request: Any) -> None:
    if str(row) in EXPECTED:
        request.node.add_marker(pytest.mark.xfail(reason=EXPECTED[str(row)], strict=True))
    model, inputs = row.build()
    exported = modelport.DynamoExporter().export(model, inputs, modelport.DynamoConfig(dynamic=True))
    captured = exported.captured
    captured.program.verify()
    for size in (0, 1, 2):
        assert_same(seeded(captured.run, row.inputs(size)), eager(model, row.inputs(size)))
    archive = exported.save(tmp_path / "model.pt2")
    loaded = torch.export.load(archive).module()
    for size in (0, 2):
        assert_same(seeded(loaded, row.inputs(size)), eager(model, row.inputs(size)))


def test_the_list_of_expected_failures_is_short_and_names_rows_that_exist() -> None:
    names = {str(row) for row in ROWS}
    assert set(EXPECTED) <= names
    assert len(EXPECTED) <= 9  # of 278 rows; only ever lowered
