"""Every row of the zoo as ONNX: valid by onnx's own checker, and right in onnxruntime at sizes never seen before."""

from __future__ import annotations

from typing import Any

import onnx
import pytest
import torch
from expected_onnx_failures import EXPECTED
from zoo import ROWS
from zoo_test import ATOL, RTOL, eager, one_thread  # noqa: F401  (a fixture)

import modelport
from modelport.runtimes.onnxruntime import quiet_session, run_session


def onnx_outputs(session: Any, program: Any, inputs: dict[str, Any]) -> list[torch.Tensor]:
    return run_session(session, program.output_names, program.feeds(inputs), program.output_dtypes)


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_onnxruntime_computes_what_the_model_computes(row: Any, tmp_path: Any, request: Any) -> None:
    if str(row) in EXPECTED:
        request.node.add_marker(pytest.mark.xfail(reason=EXPECTED[str(row)], strict=True))
    model, inputs = row.build()
    program = modelport.OnnxExporter().export(model, inputs, modelport.OnnxConfig(dynamic=True))
    path = program.save(tmp_path / "model.onnx")
    onnx.checker.check_model(str(path), full_check=True)
    session = quiet_session(path, threads=1)
    for size in (0, 1, 2):
        want = modelport.get_leaf_tensors(eager(model, row.inputs(size)))
        got = onnx_outputs(session, program, row.inputs(size))
        assert len(got) == len(want)
        for (name, w), g in zip(want.items(), got, strict=True):
            w = torch.view_as_real(w) if w.is_complex() else w
            where = f"{name} at size {size}"
            torch.testing.assert_close(
                g, w, atol=ATOL, rtol=RTOL, equal_nan=True, msg=lambda m, where=where: f"{where}: {m}"
            )


def test_the_list_of_expected_failures_names_rows_that_exist() -> None:
    assert set(EXPECTED) <= {str(row) for row in ROWS}
    assert len(EXPECTED) <= 7  # of 278 rows; only ever lowered
