"""Names of inputs, outputs and axes as users of optimum and transformers.js expect them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import torch

from ..base.errors import problem
from ..base.structure import Flat, unflatten
from .prepare import get_leaf_tensors

# Our symbols, and what the axis is called in an ONNX file.
AXES = {
    "batch": "batch_size",
    "seq": "sequence_length",
    "decoder_seq": "decoder_sequence_length",
    "channels": "num_channels",
}
_PAST_AXIS = re.compile(r"past_key_values_\d+_(?:\w+_)?(?:key|value)s?_2")
# Inputs with a row for each of input_ids: where the model does not say so itself, their sizes are still the same.
_PER_ROW = ("attention_mask", "token_type_ids", "position_ids", "bbox")
_PER_BATCH = (*_PER_ROW, "decoder_input_ids", "decoder_attention_mask", "past_key_values")


def axis_names(dims: Iterable[Mapping[str, Any]], inputs: Iterable[tuple[str, str, list[str]]]) -> dict[str, str]:
    """New names for the symbols of a graph; a name that is taken stays with its owner."""
    hints = {dim["name"]: dim["hint"] for dim in dims}
    renamed: dict[str, str] = {}
    taken = set(hints)
    for symbol in hints:
        wanted = AXES.get(symbol)
        if wanted is None and _PAST_AXIS.fullmatch(symbol):
            wanted = "past_sequence_length"
        if wanted is not None and wanted not in taken:
            renamed[symbol] = wanted
            taken.add(wanted)
    for name, _, sizes in inputs:
        stem = name.split(".")[0]
        for axis, (whole, known) in enumerate((("batch", _PER_BATCH), ("seq", _PER_ROW))):
            size = sizes[axis] if axis < len(sizes) else ""
            same = size in hints and whole in hints and size != whole and hints[size] == hints[whole]
            if stem in known and same:
                renamed[size] = renamed.get(whole, whole)
    return renamed


_CACHE = r"(?:past_key_values|cache_params)"
_SELF_OR_CROSS = re.compile(rf"{_CACHE}\.(self|cross)_attention_cache\.(\d+)\.(key|value)")
_STATES = {"conv_states": "conv", "recurrent_states": "recurrent"}
_STATE = re.compile(rf"{_CACHE}\.(\d+)\.({'|'.join(_STATES)})\.(\d+)")


def input_name(name: str) -> str:
    """What users of optimum and transformers.js call a tensor of a cache; any other name stays."""
    if found := _SELF_OR_CROSS.fullmatch(name):
        side = "decoder" if found[1] == "self" else "encoder"
        return f"past_key_values.{found[2]}.{side}.{found[3]}"
    if found := _STATE.fullmatch(name):
        further = "" if found[3] == "0" else f".{found[3]}"
        return f"past_{_STATES[found[2]]}.{found[1]}{further}"
    return name.replace("cache_params.", "past_key_values.", 1) if name.startswith("cache_params.") else name


def output_names(outputs: Iterable[str], inputs: Iterable[str]) -> dict[str, str]:
    """A cache comes in as past_key_values.* and goes out as present.*; other names that are inputs too get a suffix."""
    inputs = set(inputs)
    renamed = {}
    for name in outputs:
        if re.match(rf"{_CACHE}\.", name):
            past = input_name(name)
            renamed[name] = "present" + past.removeprefix("past_key_values").removeprefix("past")
        elif name in inputs:
            renamed[name] = f"{name}_out"
    return renamed


def leaf_paths(flat: Flat, tensors: Iterable[bool] | None = None) -> dict[str, str]:
    """What transformers calls the tensors of a structure: their dotted paths in it, by our names. `tensors` says which
    leaves are tensors where only their places are known."""
    if tensors is None:
        tensors = [isinstance(leaf, torch.Tensor) for leaf in flat.leaves]
    stand_ins = [torch.empty(0) if is_tensor else leaf for is_tensor, leaf in zip(tensors, flat.leaves, strict=True)]
    paths = {id(tensor): path for path, tensor in get_leaf_tensors(unflatten(stand_ins, flat.spec)).items()}
    return {name: paths.get(id(leaf), name) for name, leaf in zip(flat.names, stand_ins, strict=True)}


def told_apart(inputs: Mapping[str, str], outputs: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Values of a graph have one name each: what comes in and goes out under the same one is told apart by where it
    is, as transformers does."""
    both = set(inputs.values()) & set(outputs.values())

    def apart(names: Mapping[str, str], side: str) -> dict[str, str]:
        return {name: f"{side}.{path}" if path in both else path for name, path in names.items()}

    return apart(inputs, "input"), apart(outputs, "output")


def check_names(names: Mapping[str, str], known: Iterable[str]) -> None:
    known = list(known)
    unknown = [name for name in names if name not in known]
    if unknown:
        raise problem(
            "E0306",
            f"names= renames {', '.join(unknown)}, which the model does not have",
            f"it has: {', '.join(known)}",
        )
