"""What an archive asks of torch's loader: operators with each kind of argument, kinds of inputs and results, types of
values, functions in sizes. An archive whose words are all in archives that torch loads shows torch nothing new."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torch.utils._pytree import treespec_loads

_FUNCTION = re.compile(r"(\w+)\(")


def read_model(archive: Path) -> dict[str, Any]:
    with zipfile.ZipFile(archive) as file:
        return json.loads(file.read(next(name for name in file.namelist() if name.endswith("/models/model.json"))))


def words_of(model: dict[str, Any]) -> set[str]:
    module = model["graph_module"]
    return {*_words_of_graph(module["graph"]), *_words_of_signature(module["signature"])}


def load_specs(model: dict[str, Any]) -> None:
    """Which containers the inputs and results are in: quick to load, and other classes in every model."""
    for entry in model["graph_module"]["module_call_graph"]:
        for spec in ("in_spec", "out_spec"):
            if entry["signature"] and entry["signature"][spec]:
                treespec_loads(entry["signature"][spec])


def _words_of_graph(graph: dict[str, Any]) -> Iterator[str]:
    for node in graph["nodes"]:
        target = node["target"].removeprefix("torch.ops.")
        yield from (f"{target}({one['name']}={_kind(one['arg'])})" for one in node["inputs"])
        yield f"{target}->{','.join(map(_kind, node['outputs']))}"
        for one in node["inputs"]:
            if "as_graph" in one["arg"]:
                yield from _words_of_graph(one["arg"]["as_graph"]["graph"])
    for value in graph["tensor_values"].values():
        yield f"dtype:{value['dtype']} on {value['device']['type']}"
    yield from (f"in-size:{name}" for name in _FUNCTION.findall(json.dumps([*graph["tensor_values"].values()])))
    for kind in ("sym_int_values", "sym_bool_values", "sym_float_values"):
        yield from (f"{kind}:{name}" for name in _FUNCTION.findall(json.dumps(graph[kind])))


def _words_of_signature(signature: dict[str, Any]) -> Iterator[str]:
    for side in ("input_specs", "output_specs"):
        for spec in signature[side]:
            (kind, told), = spec.items()
            yield f"{side}:{kind}({_kind(told['arg'])}, persistent={told.get('persistent')})"


def _kind(arg: dict[str, Any]) -> str:
    """Of a list of sizes, also whether they are numbers or made in the graph."""
    (kind, value), = arg.items() if len(arg) == 1 else (("plain", None),)
    inside = value if isinstance(value, list) else [value]
    parts = {key for one in inside if isinstance(one, dict) for key in one if key.startswith("as_")}
    return "+".join([kind, *sorted(parts)])
