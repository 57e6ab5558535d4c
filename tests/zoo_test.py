"""Every row of the zoo: captured, interpreted at two sizes that the capture never saw, saved and reloaded as `.pt2`.

torch takes seconds to load a graph of many nodes: those are read by modelport's own reader, with WHOLE_ZOO=1 in the
environment by torch."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from expected_failures import EXPECTED
from zoo import ROWS
from zoo.quick_loading import quick_loading
from zoo.shown import Shown, assert_same, one_thread, seeded, shown  # noqa: F401  (fixtures)

from modelport import get_leaf_tensors, load_pt2

QUICK_FOR_TORCH = sys.maxsize if os.environ.get("WHOLE_ZOO") else 250  # nodes


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
    loaded = _loaded(archive, by_torch=captured.program.node_count() <= QUICK_FOR_TORCH)
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


def test_a_program_that_is_loaded_quickly_is_the_one_that_torch_loads(tmp_path: Any) -> None:
    row = next(row for row in ROWS if str(row) == "llama")
    archive = Shown(row).exported.save(tmp_path / "model.pt2")
    with quick_loading():
        quick = torch.export.load(archive)
    plain = torch.export.load(archive)
    assert str(quick) == str(plain) and str(quick.range_constraints) == str(plain.range_constraints)
