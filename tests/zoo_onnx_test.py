"""Rows of the zoo (`zoo/sample.py`) as ONNX: valid by onnx's own checker, and right in onnxruntime at sizes never seen
before."""

from __future__ import annotations

from typing import Any

import onnx
import pytest
import torch
from expected_onnx_failures import EXPECTED
from zoo import ROWS
from zoo.shown import Shown, assert_same, one_thread, shown  # noqa: F401  (fixtures)

import modelport
from modelport.exporters.onnx import checked_opset
from modelport.runtimes.onnxruntime import run_session
from modelport.runtimes.sessions import quiet_session


def onnx_outputs(session: Any, program: Any, inputs: dict[str, Any]) -> list[torch.Tensor]:
    return run_session(session, program.output_names, program.feeds(inputs), program.output_dtypes)


def test_onnxruntime_computes_what_the_model_computes(
    shown: Shown,  # noqa: F811
    tmp_path: Any,
    request: Any,
) -> None:
    row = shown.row
    if str(row) in EXPECTED:
        request.node.add_marker(pytest.mark.xfail(reason=EXPECTED[str(row)], strict=True))
    program = modelport.OnnxProgram(shown.captured, modelport.OnnxConfig(dynamic=True), checked_opset(None))
    path = program.save(tmp_path / "model.onnx")
    onnx.checker.check_model(str(path), full_check=True)
    session = quiet_session(path, threads=1)
    for size in (0, 1, 2):
        wanted = {n: torch.view_as_real(w) if w.is_complex() else w for n, w in shown.wanted(size).items()}
        assert_same(onnx_outputs(session, program, row.inputs(size)), wanted, f"at size {size}")


def test_the_list_of_expected_failures_names_rows_that_exist() -> None:
    assert set(EXPECTED) <= {str(row) for row in ROWS}
    assert len(EXPECTED) <= 7  # of 278 rows; only ever lowered
