"""ONNX files for tests of pages: as large, or as hostile, as no export is."""

from __future__ import annotations

from pathlib import Path

import onnx
from onnx import TensorProto, helper

HOSTILE = "</script><script>window.hacked=1</script><img src=x onerror=window.hacked=1>\u202e\x1b[2J"


def save_large(path: Path, layers: int = 200, operators: int = 100) -> Path:
    """layers x operators nodes, with a weight in each layer."""
    nodes, weights, before = [], [], "x"
    for layer in range(layers):
        weights.append(helper.make_tensor(f"model.layers.{layer}.mlp.weight", TensorProto.FLOAT, [4], [1.0] * 4))
        for i in range(operators):
            inside = ("self_attn.q_proj", "self_attn", "mlp")[i % 3]
            name, after = f"model.layers.{layer}.{inside}/Add_{layer * operators + i}", f"v{layer}_{i}"
            node = helper.make_node("Add", [before, weights[-1].name], [after], name=name)
            node.metadata_props.add(key="source", value=f"modeling_large.py:{100 + i}")
            nodes.append(node)
            before = after
    return _save(path, nodes, weights, before)


def save_hostile(path: Path) -> Path:
    """Whatever may be a name is one that no page should run and no terminal obey."""
    weight = helper.make_tensor(f"w{HOSTILE}", TensorProto.FLOAT, [2], [1.0, 2.0])
    node = helper.make_node("Add", ["x", weight.name], [f"y{HOSTILE}"], name=f"{HOSTILE}/Add_1", domain=HOSTILE)
    node.metadata_props.add(key="source", value=f"{HOSTILE}:7")
    deep = helper.make_node("Add", [f"y{HOSTILE}", weight.name], ["z"], name=".".join(["a"] * 5000) + "/Add_2")
    return _save(path, [node, deep], [weight], "z", doc=HOSTILE)


def _save(path: Path, nodes: list[onnx.NodeProto], weights: list[onnx.TensorProto], last: str, doc: str = "") -> Path:
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [f"n{doc}"]) for name in ("x", last)]
    graph = helper.make_graph(nodes, f"graph{doc}", values[:1], values[1:], initializer=weights)
    model = helper.make_model(graph, producer_name=f"someone{doc}")
    model.metadata_props.add(key=f"key{doc}", value=doc)
    onnx.save(model, path)
    return path
