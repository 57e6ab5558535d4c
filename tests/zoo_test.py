"""Every row of the zoo: captured, interpreted at two sizes that the capture never saw, saved and reloaded as `.pt2`."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from expected_failures import EXPECTED
from zoo import ROWS
from zoo.shown import Shown, assert_same, one_thread, seeded, shown  # noqa: F401  (fixtures)

from modelport import get_leaf_tensors


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
    loaded = torch.export.load(archive).module()
    for size in (0, 2):
        got = get_leaf_tensors(seeded(loaded, row.inputs(size)))
        assert_same(list(got.values()), shown.wanted(size), f"of the archive at size {size}")


def test_the_list_of_expected_failures_is_short_and_names_rows_that_exist() -> None:
    names = {str(row) for row in ROWS}
    assert set(EXPECTED) <= names
    assert len(EXPECTED) <= 9  # of 278 rows; only ever lowered
