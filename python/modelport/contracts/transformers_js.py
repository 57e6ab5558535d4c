"""transformers.js: the graphs in a folder `onnx`, and in config.json what to load them with."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .layout import Graph, Layout, named_class, refusal
from .transformers_js_caches import cache_names, own_names, readable
from .transformers_js_classes import DECODER, KINDS_OF_POSITION, MEDIA, RENAMED, SESSIONS, WRITTEN

CLIENT = "transformers.js"
FOLDER = "onnx"
PREPROCESSOR = "preprocessor_config.json"
_MOST_FILES = 100  # of weights, for a graph

_CACHE = r"past_\w+\..+"
_WRITTEN_CACHE = r"past_key_values\.\d+\.(?:(?:en|de)coder\.)?(?:key|value)|past_(?:conv|ssm|recurrent)\.\d+"
_DECODER = frozenset({"input_ids", "attention_mask", "position_ids", "num_logits_to_keep", "use_cache_branch"})
# What it gives each graph besides the cache. A graph that is not here takes what the tokenizer or the processor makes.
_GIVEN = {
    "decoder": _DECODER,
    "decoder_model_merged": _DECODER | {"encoder_hidden_states", "encoder_attention_mask", "inputs_embeds"},
    "embed_tokens": frozenset({"input_ids"}),
}

_ENCODERS = ("vision_encoder", "audio_encoder")


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
    caches = cache_names(readable(config.to_diff_dict())) if sessions.generates else set()
    if other := [cache for cache in sorted(caches) if not re.fullmatch(_WRITTEN_CACHE, cache)]:
        raise refusal(CLIENT, config, name, f"it starts with a cache of {other[0]} and others, which is not written")


def part_names(model: Any, names: list[str]) -> dict[str, str]:
    of_class = RENAMED.get(type(model).__name__, {})
    own = own_names(names, cache_names(readable(model.config.to_diff_dict())))
    return own | {name: of_class[name] for name in names if name in of_class}


def rewrite_parts(layout: Layout, model: Any, inputs: Mapping[str, Any], config: Any = None) -> None:
    embedding, decoder = (layout.graphs.get(name) for name in ("embed_tokens", "decoder_model_merged"))
    if embedding is None or decoder is None or set(embedding.inputs) == {"input_ids"}:
        return
    from .own_parts import renamed, write_programs
    from .transformers_js_parts import fitting_programs, words_program

    given, programs = _GIVEN["decoder_model_merged"], None
    if _not_given(decoder, given) or _kinds_of_position(decoder):
        programs = fitting_programs(model, inputs, given, config)
    for name, program in (programs or words_program(model, config)).items():
        names = part_names(model, program.input_names)
        write_programs(layout, {name: renamed(program, names) if names else program})


def write(layout: Layout) -> list[str]:
    types = layout.types()
    layout = types[0]
    refuse_unknown(layout.config, layout.model_class)
    for each in types:
        _refuse_other_graphs(each)
    folder = layout.folder / FOLDER
    folder.mkdir(exist_ok=True)
    for graph in (graph for each in types for graph in each.graphs.values()):
        for name in (*graph.weight_files, graph.file.name):
            (layout.folder / name).replace(folder / name)
    layout.write_json("config.json", _config(types))
    if preprocessor := layout.preprocessor():
        layout.write_json(PREPROCESSOR, preprocessor)
    return _notes(layout)


def _refuse_other_graphs(layout: Layout) -> None:
    wanted = SESSIONS[layout.model_class]
    if set(layout.graphs) != set(wanted.files):
        found = _listed(layout.graphs) or "no .onnx file"
        raise layout.refusal(CLIENT, f"it opens {_listed(wanted.files)}, and there is {found}")
    known = cache_names(_config([layout]))
    for name, graph in layout.graphs.items():
        role = "decoder" if wanted is DECODER else name
        given = _media(layout.model_class) if role in _ENCODERS else _GIVEN.get(role, frozenset(graph.inputs))
        if other := _not_given(graph, given):
            raise layout.refusal(CLIENT, f"it does not give {graph.file.name} the inputs {', '.join(other)}")
        for why, *ways_out in (*_misfits(role, graph, known), *_weights_elsewhere(graph)):
            raise layout.refusal(CLIENT, why, *ways_out)


def _media(model_class: str) -> frozenset[str]:
    renamed = RENAMED.get(model_class, {})
    return frozenset(renamed.get(name, name) for name in MEDIA.get(model_class, ()))


def _misfits(role: str, graph: Graph, known: set[str]) -> Iterator[tuple[str, ...]]:
    """What is wrong with the inputs and outputs of a graph, and the ways out of it. `known` are the names of caches."""
    caches = graph.inputs_like(_CACHE)
    if role.startswith("decoder") and not caches:
        yield (f"{graph.file.name} takes no past",)
    if lost := [port.name for port in caches if port.name not in known]:
        first = f"{', '.join(sorted(known)[:3])}, …" if known else "none, by its config.json"
        yield (f"it has no first cache for {', '.join(lost[:3])} of {graph.file.name}: it starts with {first}",)
    # The first cache is made of the sizes that the graph states: this name is the batch, every other name is 0.
    unnamed = [port.name for port in caches if port.axes[0] != "batch_size"]
    if unnamed:
        yield (f"the first axis of {unnamed[0]} is not called batch_size",)
    if (kinds := _kinds_of_position(graph)) not in (None, KINDS_OF_POSITION):
        yield (f"it gives {KINDS_OF_POSITION} kinds of positions, and {graph.file.name} takes {kinds}",)
    for port in (*graph.inputs.values(), *graph.outputs.values()):
        if port.dtype == "bf16":
            yield f"{port.name} is in bf16, for which it has no arrays", "--dtype fp32"


def _not_given(graph: Graph, given: frozenset[str]) -> list[str]:
    caches = graph.inputs_like(_CACHE)
    return [name for name, port in graph.inputs.items() if name not in given and port not in caches]


def _kinds_of_position(graph: Graph) -> int | str | None:
    """How many it takes, where a token has several."""
    positions = graph.inputs.get("position_ids")
    return positions.axes[0] if positions is not None and len(positions.axes) == 3 else None


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


def _config(types: list[Layout]) -> dict[str, Any]:
    """The checkpoint's own config.json, and what that leaves to the defaults of its class: the client knows none."""
    layout, graphs = types[0], [graph for each in types for graph in each.graphs.values()]
    file = layout.folder / "config.json"
    there = json.loads(file.read_text()) if file.exists() else {}
    ours = {
        # Else it would look for quantized files in a browser. The files without a suffix are called fp32.
        "dtype": layout.dtype or "fp32",
        "use_external_data_format": {g.file.name: len(g.weight_files) for g in graphs if g.weight_files},
    }
    settings = there.get("transformers.js_config", {}) | ours
    whole = readable(_filled(layout.config.to_diff_dict(), there))
    return {**whole, "architectures": [layout.model_class], "transformers.js_config": settings}


def _filled(defaults: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """Also in the configs inside: what is given, and else the default."""
    both = {key: (defaults[key], given[key]) for key in defaults.keys() & given.keys()}
    inside = {key: _filled(*pair) for key, pair in both.items() if all(isinstance(value, dict) for value in pair)}
    return defaults | given | inside


def _notes(layout: Layout) -> list[str]:
    notes = []
    reads_text = any(re.fullmatch("input_ids|inputs_embeds", name) for g in layout.graphs.values() for name in g.inputs)
    if reads_text and not layout.has("tokenizer.json"):
        notes.append(f"there is no tokenizer.json, the only form of a tokenizer that {CLIENT} reads")
    sees = any(name in g.inputs for g in layout.graphs.values() for name in ("pixel_values", "input_features"))
    if sees and not layout.has(PREPROCESSOR):
        notes.append(f"there is no {PREPROCESSOR}, by which {CLIENT} prepares images and sound")
    return notes
