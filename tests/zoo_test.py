"""Rows of the zoo (`zoo/sample.py`): captured, interpreted at two sizes that the capture never saw, saved and reloaded
as `.pt2`.

torch loads as many archives as show it all that small ones have (`zoo/loaded_by_torch.py`): it takes seconds for one.
The others are read by modelport's own reader, with WHOLE_ZOO=1 in the environment by torch as well."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from expected_failures import EXPECTED
from zoo import ROWS
from zoo.archive_words import load_specs, read_model
from zoo.loaded_by_torch import choice, choose, is_for_torch
from zoo.quick_loading import quick_loading
from zoo.shown import Shown, assert_same, one_thread, seeded, shown  # noqa: F401  (fixtures)

from modelport import get_leaf_tensors, load_pt2


def test_the_graph_and_the_archive_compute_what_the_model_computes(
    shown: Shown,  # noqa: F811
    tmp_path: Any,
    request: Any,
) -> None:
    row = shown.row
    if str(row) in EXPECTED:
        request.node.add_marker(pytest.mark.xfail(reason=EXPECTED[str(row)], strict=True))
    captured = shown.captured
    captured.program.verify()
    for size in (0, 1, 2):
        got = get_leaf_tensors(seeded(captured.run, row.inputs(size)))
        assert_same(list(got.values()), shown.wanted(size), f"at size {size}")
    archive = shown.exported.save(tmp_path / "model.pt2")
    model = read_model(archive)
    load_specs(model)
    by_torch = str(row) in EXPECTED or is_for_torch(str(row), captured.program.node_count(), model)
    loaded = _loaded(archive, by_torch=by_torch)
    for size in (0, 2):
        got = get_leaf_tensors(seeded(loaded, row.inputs(size)))
        assert_same(list(got.values()), shown.wanted(size), f"of the archive at size {size}")


def _loaded(archive: Path, *, by_torch: bool) -> Callable[..., Any]:
    if not by_torch:
        return load_pt2(archive).run
    with quick_loading():
        return torch.export.load(archive).module()


def test_the_list_of_expected_failures_is_short_and_names_rows_that_exist() -> None:
    names = {str(row) for row in ROWS}
    assert set(EXPECTED) <= names
    assert len(EXPECTED) <= 9  # of 278 rows; only ever lowered


def test_torch_loads_archives_that_show_it_every_word_and_any_with_a_new_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WHOLE_ZOO", raising=False)
    assert choose({"a": (9, {"x", "y"}), "b": (9, {"y"}), "c": (900, {"x", "y", "z"})}) == {"a": ["x", "y"], "c": ["z"]}
    names = {str(row) for row in ROWS}
    assert len(choice()) > 30 and choice().keys() <= names - EXPECTED.keys()
    node = {"target": "torch.ops.new.op", "inputs": [], "outputs": []}
    values = {kind: {} for kind in ("tensor_values", "sym_int_values", "sym_bool_values", "sym_float_values")}
    signature = {"input_specs": [], "output_specs": []}
    for nodes, by_torch in (([], False), ([node], True)):
        model = {"graph_module": {"graph": {"nodes": nodes, **values}, "signature": signature}}
        assert is_for_torch("a row", 1, model) == by_torch


def test_a_program_that_is_loaded_quickly_is_the_one_that_torch_loads(tmp_path: Any) -> None:
    row = next(row for row in ROWS if str(row) == "llama")
    archive = Shown(row).exported.save(tmp_path / "model.pt2")
    with quick_loading():
        quick = torch.export.load(archive)
    plain = torch.export.load(archive)
    assert str(quick) == str(plain) and str(quick.range_constraints) == str(plain.range_constraints)
