"""What random operators make of the least and the greatest number that a runtime draws, which chance shows too seldom.

Some runtimes round up to 1 what they draw below it: such a draw is tried as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx
import pytest
import torch
from executorch_process import RuntimeProcess
from onnx_parity import OPTIONS

from modelport.base import core
from modelport.exporters.executorch_file import Method, write_executorch
from modelport.runtimes.onnxruntime import run_session
from modelport.runtimes.sessions import quiet_session

# A row by name, its call, and what lies outside of its results.
ROWS = {
    "aten.rand": ("(size=[4], dtype=f32) : f32[4]", lambda x: (x < 0) | (x >= 1)),
    "aten.rand in half precision": ("(size=[4], dtype=f16) : f16[4]", lambda x: (x < 0) | (x >= 1)),
    "aten.uniform": ("(self=%x, from=0.0, to=1.0) : f16[4]", lambda x: (x < 0) | (x >= 1)),
    "aten.exponential": ("(self=%x, lambd=1.0) : f32[4]", lambda x: (x <= 0) | ~x.isfinite()),
    "aten.geometric": ("(self=%x, p=0.5) : f32[4]", lambda x: (x < 1) | ~x.isfinite()),
    "aten.cauchy": ("(self=%x) : f32[4]", lambda x: ~x.isfinite()),
    "aten.randint": ("(high=5, size=[4], dtype=i64) : i64[4]", lambda x: (x < 0) | (x >= 5)),
    # Of four weights the last two are 0.
    "aten.multinomial": ("(self=%x, num_samples=2, replacement=false) : i64[2]", lambda x: (x < 0) | (x >= 2)),
    "aten.multinomial with replacement": (
        "(self=%x, num_samples=2, replacement=true) : i64[2]",
        lambda x: (x < 0) | (x >= 2),
    ),
}


def operand_of(row: str) -> torch.Tensor:
    return torch.tensor([0.5, 1.0, 0.0, 0.0], dtype=torch.half if row == "aten.uniform" else torch.float)


def program_of(row: str) -> Any:
    call = row.split()[0] + ROWS[row][0]
    dtype = "f16" if operand_of(row).dtype == torch.half else "f32"
    return core.parse_graph(f"graph sample(%x: {dtype}[4])\n{{\n  %1 = {call}\n  return y0 = %1\n}}\n")


def where_all_draws_are(draw: int, model: onnx.ModelProto) -> bytes:
    """The model with nodes that draw nothing: Dropout's mask of ones, and what is drawn after the pattern of zeros."""
    constant = onnx.helper.make_tensor("draw", onnx.TensorProto.FLOAT, [], [draw])
    model.graph.initializer.append(constant)
    nodes = list(model.graph.node)
    del model.graph.node[:]
    for node in nodes:
        if node.op_type == "Dropout":
            node = onnx.helper.make_node("Equal", [node.input[0], "draw"], [node.output[1]])
        elif node.op_type == "RandomUniformLike":
            drawn = f"{node.output[0]}_drawn"
            model.graph.node.append(onnx.helper.make_node("CastLike", ["draw", node.input[0]], [drawn]))
            node = onnx.helper.make_node("Add", [node.input[0], drawn], node.output)
        model.graph.node.append(node)
    assert not {"Dropout", "RandomUniformLike"} & {node.op_type for node in model.graph.node}
    return model.SerializeToString()


@pytest.mark.parametrize("opset", [21, 23])
@pytest.mark.parametrize("draw", [0, 1])
@pytest.mark.parametrize("row", ROWS)
def test_the_outermost_draws_of_onnxruntime_give_what_torch_may_give(row: str, draw: int, opset: int) -> None:
    lowered = core.lower_onnx(program_of(row), opset, True)
    model = onnx.load_from_string(lowered.bytes(OPTIONS, {}, {}))
    session = quiet_session(where_all_draws_are(draw, model))
    feeds = {value.name: operand_of(row).numpy() for value in session.get_inputs()}
    (result,) = run_session(session, lowered.outputs(), feeds, lowered.output_dtypes())
    assert not ROWS[row][1](result).any(), result


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RuntimeProcess]:
    pytest.importorskip("executorch")
    with (tmp_path_factory.mktemp("runtime") / "log").open("w+b") as log:
        process = RuntimeProcess(log)
        yield process
        process.close()


@pytest.mark.parametrize("draw", [0, 1])
@pytest.mark.parametrize("row", ROWS)
def test_the_outermost_draws_of_executorch_give_what_torch_may_give(
    runtime: RuntimeProcess, tmp_path: Path, row: str, draw: int
) -> None:
    text = core.lower_executorch(program_of(row)).text()
    fixed, count = re.subn(
        r"et\.aten\.rand\.out\((size=\[.*?\])\)", rf"et.aten.full.out(\1, fill_value={draw}.0)", text
    )
    assert count
    write_executorch(tmp_path / "m.pte", [Method("forward", core.parse_graph(fixed))], with_limits=False)
    ((result,),) = runtime.run(tmp_path / "m.pte", [("forward", [operand_of(row)])], custom_operators=False)
    assert not ROWS[row][1](result).any(), result
