"""transformers.js: the graphs in a folder `onnx`, and in config.json what to load them with."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .layout import Graph, Layout, named_class, refusal
from .transformers_js_classes import DECODER, SESSIONS, WRITTEN

CLIENT = "transformers.js"
FOLDER = "onnx"
PREPROCESSOR = "preprocessor_config.json"
_MOST_FILES = 100  # of weights, for a graph
_KINDS_OF_POSITION = 3  # time, height and width of what is seen

_CACHE = r"past_(?:key_values|conv|ssm|recurrent)\..+"
_DECODER = frozenset({"input_ids", "attention_mask", "position_ids", "num_logits_to_keep", "use_cache_branch"})
# What it gives each graph besides the cache. A graph that is not here takes what the tokenizer or the processor makes.
_GIVEN = {
    "decoder": _DECODER,
    "decoder_model_merged": _DECODER | {"encoder_hidden_states", "encoder_attention_mask", "inputs_embeds"},
    "embed_tokens": frozenset({"input_ids"}),
}


def knows(config: Any, model_class: str | None = None) -> bool:
    """Whether it has a class of this name that runs on files of ours."""
    return SESSIONS.get(named_class(config, model_class)) in WRITTEN


def refuse_unknown(config: Any, model_class: str | None = None) -> None:
    name = named_class(config, model_class)
    sessions = SESSIONS.get(name)
    if sessions is None:
        raise refusal(CLIENT, config, name, "it has no class of this name")
    if sessions not in WRITTEN:
        raise refusal(CLIENT, config, name, f"it opens {_listed(sessions.files)}, which are not written")


def rewrite_parts(layout: Layout, model: Any, inputs: Mapping[str, Any], config: Any = None) -> None:
    embedding = layout.graphs.get("embed_tokens")
    if embedding is None or set(embedding.inputs) == {"input_ids"}:
        return
    from .own_parts import write_parts
    from .transformers_js_parts import words

    write_parts(layout, {"embed_tokens": words(model)}, config)


def write(layout: Layout) -> list[str]:
    refuse_unknown(layout.config, layout.model_class)
    _refuse_other_graphs(layout)
    folder = layout.folder / FOLDER
    folder.mkdir(exist_ok=True)
    for graph in layout.graphs.values():
        for name in (*graph.weight_files, graph.file.name):
            (layout.folder / name).replace(folder / name)
    layout.write_json("config.json", _config(layout))
    if preprocessor := layout.preprocessor():
        layout.write_json(PREPROCESSOR, preprocessor)
    return _notes(layout)


def _refuse_other_graphs(layout: Layout) -> None:
    wanted = SESSIONS[layout.model_class]
    if set(layout.graphs) != set(wanted.files):
        found = _listed(layout.graphs) or "no .onnx file"
        raise layout.refusal(CLIENT, f"it opens {_listed(wanted.files)}, and there is {found}")
    for name, graph in layout.graphs.items():
        role = "decoder" if wanted is DECODER else name
        for why, *ways_out in (*_misfits(role, graph), *_weights_elsewhere(graph)):
            raise layout.refusal(CLIENT, why, *ways_out)


def _misfits(role: str, graph: Graph) -> Iterator[tuple[str, ...]]:
    """What is wrong with the inputs and outputs of a graph, and the ways out of it."""
    caches = graph.inputs_like(_CACHE)
    other = [name for name, port in graph.inputs.items() if name not in _GIVEN.get(role, {name}) and port not in caches]
    if other:
        yield (f"it does not give {graph.file.name} the inputs {', '.join(other)}",)
    if role.startswith("decoder") and not caches:
        yield (f"{graph.file.name} takes no past",)
    # The first cache is made of the sizes that the graph states: this name is the batch, every other name is 0.
    unnamed = [port.name for port in caches if port.axes[0] != "batch_size"]
    if unnamed:
        yield (f"the first axis of {unnamed[0]} is not called batch_size",)
    positions = graph.inputs.get("position_ids")
    if positions is not None and len(positions.axes) == 3 and positions.axes[0] != _KINDS_OF_POSITION:
        yield (f"it gives {_KINDS_OF_POSITION} kinds of positions, and {graph.file.name} takes {positions.axes[0]}",)
    for port in (*graph.inputs.values(), *graph.outputs.values()):
        if port.dtype == "bf16":
            yield f"{port.name} is in bf16, for which it has no arrays", "--dtype fp32"


def _weights_elsewhere(graph: Graph) -> Iterator[tuple[str, ...]]:
    if _numbered(graph) != set(graph.weight_files):
        yield f"the weights of {graph.file.name} are in {graph.weight_files[0]}", "--weights copy"
    if len(graph.weight_files) > _MOST_FILES:
        yield f"{len(graph.weight_files)} files are more than the {_MOST_FILES} it opens", "a larger --shard-size"


def _numbered(graph: Graph) -> set[str]:
    """The names under which it looks for the weights of a graph, as many as there are."""
    first = f"{graph.file.name}_data"
    return {first if i == 0 else f"{first}_{i}" for i in range(len(graph.weight_files))}


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"{name}.onnx" for name in names)


def _config(layout: Layout) -> dict[str, Any]:
    """The checkpoint's own config.json, and what that leaves to the defaults of its class: the client knows none."""
    file = layout.folder / "config.json"
    there = json.loads(file.read_text()) if file.exists() else {}
    ours = {
        # Else it would look for quantized files in a browser. The files without a suffix are called fp32.
        "dtype": "fp32",
        "use_external_data_format": {
            g.file.name: len(g.weight_files) for g in layout.graphs.values() if g.weight_files
        },
    }
    settings = there.get("transformers.js_config", {}) | ours
    whole = layout.config.to_diff_dict() | there
    return {**whole, "architectures": [layout.model_class], "transformers.js_config": settings}


def _notes(layout: Layout) -> list[str]:
    notes = []
    reads_text = any(re.fullmatch("input_ids|inputs_embeds", name) for g in layout.graphs.values() for name in g.inputs)
    if reads_text and not layout.has("tokenizer.json"):
        notes.append(f"there is no tokenizer.json, the only form of a tokenizer that {CLIENT} reads")
    sees = any(name in g.inputs for g in layout.graphs.values() for name in ("pixel_values", "input_features"))
    if sees and not layout.has(PREPROCESSOR):
        notes.append(f"there is no {PREPROCESSOR}, by which {CLIENT} prepares images and sound")
    return notes
