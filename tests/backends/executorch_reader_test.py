"""What a .pte file says of itself, delegates in it, and files that are damaged."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from executorch_process import RuntimeProcess

from modelport import ExportError, _artifact
from modelport.artifacts.pte import read_program
from modelport.base import core
from modelport.exporters.executorch_file import Delegate, Method, write_executorch

pytest.importorskip("executorch")


@pytest.fixture(scope="module")
def runtime() -> Iterator[RuntimeProcess]:
    process = RuntimeProcess()
    yield process
    process.close()


DELEGATED = """
graph g(%x: f32[n, 4], %y: f32[n, 4])
  where n in 1..8 = 2
{
  %1 = et.aten.relu.out(self=%x) : f32[n, 4]
  %2 = et.delegate(payload=0, inputs=[%1, %y]) : f32[n, 4]
  %3 = et.aten.neg.out(self=%2) : f32[n, 4]
  return z = %3
}
"""


def sum_payload(folder: Path) -> bytes:
    """x + y for XNNPACK, made with the schema compiler that comes with the runtime."""
    package = Path(find_spec("executorch").submodule_search_locations[0])  # type: ignore[union-attr,index]
    nowhere = 0xFFFFFFFF

    def value(number: int, flags: int) -> dict[str, object]:
        tensor = {"datatype": "xnn_datatype_fp32", "num_dims": 2, "dims": [8, 4], "constant_buffer_idx": 0}
        tensor |= {"external_id": number if flags else nowhere, "flags": flags, "id_out": number}
        return {"xvalue_union_type": "XNNTensorValue", "xvalue_union": tensor}

    add = {"input1_id": 0, "input2_id": 1, "output_id": 2, "flags": 0}
    graph = {
        "version": "0",
        "xnodes": [{"xnode_union_type": "XNNAdd", "xnode_union": add, "debug_handle": 0}],
        "xvalues": [value(0, 1), value(1, 1), value(2, 2)],
        "num_externs": 3,
        "input_ids": [0, 1],
        "output_ids": [2],
        "constant_data": [{"offset": 0, "size": 0}],
    }
    (folder / "sum.json").write_text(json.dumps(graph))
    schema = package / "backends/xnnpack/serialization/schema.fbs"
    compiler = [str(package / "data/bin/flatc"), "--binary", "-o", str(folder), str(schema), str(folder / "sum.json")]
    subprocess.run(compiler, check=True)
    tables = (folder / "sum.bin").read_bytes()
    head = struct.pack("<I4sHIIIQ", 0, b"XH00", 30, 32, len(tables), (32 + len(tables) + 15) // 16 * 16, 0)
    return (head.ljust(32, b"\0") + tables).ljust((32 + len(tables) + 15) // 16 * 16, b"\0")


def test_a_delegate_takes_tensors_of_the_method_and_gives_others(runtime: RuntimeProcess, tmp_path: Path) -> None:
    program = core._modelport.parse_graph(DELEGATED)
    delegates = [Delegate("XnnpackBackend", sum_payload(tmp_path))]
    written = write_executorch(tmp_path / "m.pte", [Method("forward", program)], delegates=delegates)
    x, y = torch.randn(3, 4), torch.randn(3, 4)
    ((z,),) = runtime.run(tmp_path / "m.pte", [("forward", [x, y])])
    torch.testing.assert_close(z, -(torch.relu(x) + y))
    said = read_program(tmp_path / "m.pte")
    assert said["methods"]["forward"]["delegates"] == [("XnnpackBackend", len(delegates[0].payload), 1)]
    assert said["methods"]["forward"]["arenas"] == [written["methods"]["forward"]["arena_bytes"]]


def test_a_file_tells_its_methods_operators_memory_and_constants(tmp_path: Path) -> None:
    text = """
graph g(%x: f32[n, 4])
  where n in 1..8 = 2
  weights @w: f32[4, 4], @s: i64[3] buffer
{
  %1 = et.aten.mm.out(self=%x, mat2=@w) : f32[n, 4]
  %2 = et.aten.add.Scalar_out(self=@s, other=1, alpha=1) : i64[3]
  return y = %1
  mutate @s = %2
}
"""
    program = core._modelport.parse_graph(text, {"w": torch.ones(4, 4), "s": torch.arange(3)})
    constants = {"get_max_seq_len": 8, "get_names": ["a", "b"]}
    write_executorch(tmp_path / "m.pte", [Method("step", program)], constant_methods=constants, weights_beside=True)
    said = read_program(tmp_path / "m.pte")
    step = said["methods"]["step"]
    assert step["inputs"] == [{"dtype": "f32", "sizes": [8, 4], "dynamic": True}]
    assert step["operators"] == {"aten::mm.out": 1, "aten::add.Scalar_out": 1}
    assert step["arenas"] == [2 * 8 * 4 * 4, 32]
    assert said["constant_methods"]["get_max_seq_len"] == [8]
    assert said["constant_methods"]["get_names"] == ["a", "b"]
    assert said["external"] == ["w"] and said["constants"] == 0 and said["initial_bytes"] == 24


def test_a_file_of_something_else_is_refused_with_a_way_out(tmp_path: Path) -> None:
    (tmp_path / "m.pte").write_bytes(b"\0" * 4 + b"ONNX" + b"\0" * 100)
    with pytest.raises(ExportError, match=r"no ExecuTorch program(.|\n)*modelport export executorch"):
        read_program(tmp_path / "m.pte")


def test_a_build_without_the_schemas_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delattr(_artifact, "read_executorch")
    monkeypatch.delattr(core._modelport, "write_executorch")
    with pytest.raises(ExportError, match=r"pip install --no-deps executorch==1\.5\.1"):
        read_program(tmp_path / "m.pte")
    with pytest.raises(ExportError, match=r"pip install --no-deps executorch==1\.5\.1"):
        write_executorch(tmp_path / "m.pte", [])


def test_reading_needs_neither_torch_nor_the_runtime(tmp_path: Path) -> None:
    text = "graph g(%x: f32[2])\n{\n  %1 = et.aten.relu.out(self=%x) : f32[2]\n  return y = %1\n}\n"
    write_executorch(tmp_path / "m.pte", [Method("forward", core._modelport.parse_graph(text))])
    code = (
        "import sys; from modelport.artifacts.pte import read_program; read_program(sys.argv[1]); "
        "assert 'torch' not in sys.modules and 'executorch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "m.pte")], check=True)
