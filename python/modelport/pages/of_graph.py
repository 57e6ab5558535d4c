"""The record of graphs of ours: captures, `.pt2` archives and graph text. Needs torch, where the others do not."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

from .contents import of_tensor
from .of_onnx import place_of
from .record import Axis, Node, Part, Reason, Report, Value, Weight, range_text

_NAMES = re.compile(r"[%@][\w.]+")
_DECLARED = re.compile(r"@([\w.]+): (\w+)\[([\d, ]*)\]")  # weights, at the head of a graph
_EFFECTS = {"unified": "made equal", "pinned": "pinned", "bounded": "bounded", "kept": "kept as a condition"}


def captured_report(captured: Any, title: str = "") -> Report:
    """Of what `modelport.capture` gives."""
    part = graph_part(captured.lazy_program, title or "graph")
    part.attempts = [tuple(attempt) for attempt in captured.attempts]
    part.limits += [f"{name} stays {value!r}" for name, value in captured.frozen().items()]
    return Report(title or "Capture", "", "Capture", {"format": "graph of a capture"}, [part])


def pt2_report(path: Path) -> Report:
    from ..base import core

    program, inputs, *_ = core.read_pt2(str(path))
    part = graph_part(program, path.stem)
    part.limits += [f"{name} stays {value!r}" for name, in_graph, value in inputs if not in_graph]
    facts = {"format": "PyTorch program"}
    files = {path.name: path.stat().st_size}
    return Report(path.name, str(path), "PyTorch program", facts, [part], files, whole=[str(path)])


def text_report(path: Path) -> Report:
    """Of a file that has what `print(captured)` shows."""
    from ..base import core

    text = path.read_text(encoding="utf-8")
    part = graph_part(core.parse_graph(text), path.stem)
    for name, dtype, sizes in _DECLARED.findall(text):
        shape = tuple(int(size) for size in sizes.split(",") if size.strip())
        part.weights.append(Weight(name, dtype, shape, math.prod(shape) * _bytes_of(dtype)))
    return Report(path.name, str(path), "Graph text", {"format": "graph text"}, [part])


def _bytes_of(dtype: str) -> int:
    """Of a type as we write it: "f32", "bool"."""
    bits = re.search(r"\d+$", dtype)
    return max(1, int(bits[0]) // 8) if bits else 1


def graph_part(program: Any, name: str) -> Part:
    weights = program.weights()
    nodes = [_node(row) for row in program.nodes()]
    operators: dict[str, int] = {}
    for node in nodes:
        operators[node.op] = operators.get(node.op, 0) + 1
    return Part(
        name=name,
        inputs=[Value(name, dtype, tuple(sizes)) for name, dtype, sizes in program.inputs()],
        outputs=[Value(name, "", None) for name in program.output_names()],
        axes=_axes(program),
        limits=[_assumed(row) for row in program.assumptions()],
        nodes=nodes,
        weights=[_weight(name, tensor) for name, tensor in weights.items()],
        operators=operators,
    )


def _node(row: dict[str, Any]) -> Node:
    results, _, rest = row["text"].partition(" = ")
    outputs = _NAMES.findall(results) if rest else []
    inputs = [name.removeprefix("@") for name in _NAMES.findall(rest or results)]
    return Node(row["op"], row["module"], place_of(row), tuple(inputs), tuple(outputs), rest or row["text"])


def _weight(name: str, tensor: Any) -> Weight:
    dtype = str(tensor.dtype).removeprefix("torch.")
    contents = None if tensor.is_meta else of_tensor(tensor)
    return Weight(name, dtype, tuple(tensor.shape), tensor.nbytes, contents=contents)


def _axes(program: Any) -> list[Axis]:
    guards = program.guards()

    def reasons(symbol: str) -> tuple[Reason, ...]:
        rows = [row for row in guards if symbol in row["symbols"]]
        return tuple(Reason(f"{row['condition']}, {_EFFECTS[row['effect']]}", place_of(row)) for row in rows)

    axes = []
    for dim in program.dims():
        found = reasons(dim["name"])
        if dim["from_data"]:
            found = (Reason("a number that the model reads from its data"), *found)
        axes.append(Axis(dim["name"], range_text(dim["lo"], dim["hi"]), dim["hint"], found))
    known = {axis.name for axis in axes}
    axes += [
        Axis(symbol, value, None, reasons(symbol))
        for symbol, value in program.replacements().items()
        if symbol not in known
    ]
    return axes


def _assumed(row: dict[str, Any]) -> str:
    line = place_of(row).line
    return f"the model branched on its data, and the graph holds where it is {row['expected']}" + (
        f"  ({line})" if line else ""
    )
