"""Which axes of the inputs are symbolic: `dynamic=True`, or `dynamic_shapes` in every form that torch.export takes."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

import torch

from ..base.errors import problem
from ..base.structure import Flat

# Axes that people know by name; any other is called after its input: pixel_mask_1.
_ROLES = {
    "input_ids": ("batch", "seq"),
    "inputs_embeds": ("batch", "seq"),
    "pixel_values": ("batch", "channels", "height", "width"),
    "input_features": ("batch", "features", "frames"),
    "input_values": ("batch", "samples"),
    "decoder_input_ids": ("batch", "decoder_seq"),
}


class MaybeEmpty(str):
    """The name of an axis that may have nothing on it: as `torch.export.Dim(name, min=0)`, which takes a second to
    import what it computes with."""


@dataclasses.dataclass
class Symbol:
    """A dimension of the program: where its size is read, and the sizes that it may take."""

    name: str
    input: str
    axis: int
    low: int = 1
    high: int | None = None
    named_by_user: bool = False

    def hint(self, flat: Flat) -> int:
        return int(flat.tensors()[self.input].shape[self.axis])


class Axes:
    """For each input tensor, a symbol's name or a fixed size an axis."""

    def __init__(self) -> None:
        self.symbols: dict[str, Symbol] = {}
        self._of: dict[str, dict[int, str]] = {}
        self.join_lists = True  # lists in results may have any number of tensors, and the graph gives them in one

    def of(self, name: str, tensor: torch.Tensor) -> list[int | str]:
        chosen = self._of.get(name, {})
        return [chosen.get(axis, int(size)) for axis, size in enumerate(tensor.shape)]

    def add(self, symbol: Symbol) -> None:
        known = self.symbols.setdefault(symbol.name, symbol)
        known.low = max(known.low, symbol.low)
        if symbol.high is not None:
            known.high = symbol.high if known.high is None else min(known.high, symbol.high)
        self._of.setdefault(symbol.input, {})[symbol.axis] = symbol.name

    def free_name(self, input_name: str, axis: int) -> str:
        roles = _ROLES.get(input_name, ())
        wanted = roles[axis] if axis < len(roles) else ""
        if not wanted or wanted in self.symbols:
            wanted = f"{re.sub(r'[^A-Za-z0-9_]', '_', input_name)}_{axis}"
        return wanted

    def report_pinned(self, captured: Any) -> None:
        """An axis that the user named and the model pins to one size is an error with the line that pinned it."""
        replaced = captured.program.replacements()
        for symbol in self.symbols.values():
            value = replaced.get(symbol.name, "")
            if not symbol.named_by_user or not value.isdigit():
                continue
            guard: dict[str, Any] = next((g for g in captured.program.guards() if symbol.name in g["symbols"]), {})
            where: dict[str, Any] = {key: guard[key] for key in ("file", "line", "function", "module") if key in guard}
            raise problem(
                "E0302",
                f"axis {symbol.axis} of {symbol.input} was to be dynamic as '{symbol.name}', "
                f"but the model needs it to be {value}",
                f"leave it out of dynamic_shapes, or give None for axis {symbol.axis}",
                "change the model's line so that it does not depend on this size",
                where=where,
            )


def axes_for(flat: Flat, *, dynamic: bool, dynamic_shapes: Any, join_lists: bool = True) -> Axes:
    axes = Axes()
    axes.join_lists = join_lists
    if dynamic_shapes is not None:
        _explicit(axes, flat, dynamic_shapes)
    elif dynamic:
        for name, tensor in flat.tensors().items():
            for axis, size in enumerate(tensor.shape):
                if size > 1:
                    _automatic(axes, name, axis)
    return axes


def _automatic(axes: Axes, name: str, axis: int) -> None:
    axes.add(Symbol(axes.free_name(name, axis), name, axis, _least(name)))


def _least(name: str) -> int:
    """The past of a cache may be empty; an axis of any other input has something on it."""
    return 0 if name.startswith("past_key_values.") else 1


def _explicit(axes: Axes, flat: Flat, dynamic_shapes: Any) -> None:
    tensors = flat.tensors()
    if isinstance(dynamic_shapes, list | tuple):
        top = list(dict.fromkeys(name.split(".")[0] for name in flat.names))
        if len(dynamic_shapes) != len(top):
            raise problem(
                "E0303",
                f"dynamic_shapes has {len(dynamic_shapes)} entries for {len(top)} inputs",
                f"give one entry for each of: {', '.join(top)}",
            )
        dynamic_shapes = dict(zip(top, dynamic_shapes, strict=True))
    if not isinstance(dynamic_shapes, Mapping):
        raise problem(
            "E0303", "dynamic_shapes is neither a dict by input name nor a tuple", "{'input_ids': {0: 'batch'}}"
        )
    for key, spec in _without_groups(flat, dynamic_shapes).items():
        matching = [n for n in flat.names if n == key or n.startswith(f"{key}.")]
        if not matching and spec is None:  # a flag that is no input any more
            continue
        if not matching:
            raise problem(
                "E0303",
                f"dynamic_shapes names an input {key!r} that is not among the inputs",
                f"the inputs are: {', '.join(dict.fromkeys(n.split('.')[0] for n in flat.names))}",
            )
        for name, one in _spread(key, spec, [n for n in matching if n in tensors]):
            _axes_of_one(axes, name, tensors[name], one)


def _without_groups(flat: Flat, dynamic_shapes: Mapping[str, Any]) -> dict[str, Any]:
    """What a model takes by `**kwargs`, torch.export wants in a dict of that name: here it is an input as any other."""
    top = {name.split(".")[0] for name in flat.names}
    spread: dict[str, Any] = {}
    for key, spec in dynamic_shapes.items():
        group = isinstance(spec, Mapping) and key not in top and all(isinstance(name, str) for name in spec)
        spread |= spec if group else {key: spec}
    return spread


def _spread(key: str, spec: Any, names: list[str]) -> list[tuple[str, Any]]:
    """A nested spec follows the structure of its input; a spec of one tensor under a container serves all of them."""
    if names == [key] or not names:
        return [(name, spec) for name in names]
    leaves: list[Any] = []
    _collect_specs(spec, leaves)
    if len(leaves) == 1:
        leaves = leaves * len(names)
    if len(leaves) != len(names):
        raise problem(
            "E0303",
            f"dynamic_shapes[{key!r}] has {len(leaves)} tensors, the input has {len(names)}",
            f"they are: {', '.join(names[:6])}",
        )
    return list(zip(names, leaves, strict=True))


def _collect_specs(spec: Any, into: list[Any]) -> None:
    if spec is None or _is_tensor_spec(spec):
        into.append(spec)
    elif isinstance(spec, Mapping):
        for item in spec.values():
            _collect_specs(item, into)
    else:
        for item in spec:
            _collect_specs(item, into)


def _is_tensor_spec(spec: Any) -> bool:
    if isinstance(spec, Mapping):
        return all(isinstance(axis, int) and not isinstance(v, Mapping | list | tuple) for axis, v in spec.items())
    return isinstance(spec, list | tuple) and all(v is None or not isinstance(v, Mapping | list | tuple) for v in spec)


def _axes_of_one(axes: Axes, name: str, tensor: torch.Tensor, spec: Any) -> None:
    if spec is None:
        return
    entries = spec.items() if isinstance(spec, Mapping) else enumerate(spec)
    for axis, wanted in entries:
        if not isinstance(axis, int) or not -tensor.dim() <= axis < tensor.dim():
            raise problem(
                "E0303", f"{name} has no axis {axis}: it has {tensor.dim()} axes", f"use 0 to {tensor.dim() - 1}"
            )
        _one_axis(axes, name, axis % tensor.dim(), wanted)


def _one_axis(axes: Axes, name: str, axis: int, wanted: Any) -> None:
    hint = getattr(torch.export.Dim, "AUTO", None)
    dynamic = getattr(torch.export.Dim, "DYNAMIC", None)
    if wanted is None or isinstance(wanted, int) or wanted is getattr(torch.export.Dim, "STATIC", None):
        return
    if isinstance(wanted, str):
        low = 0 if isinstance(wanted, MaybeEmpty) else 1
        axes.add(Symbol(_valid(wanted), name, axis, low, named_by_user=True))
    elif type(wanted).__name__ == "_DimHint" or wanted in (hint, dynamic):
        least = getattr(wanted, "min", None)
        symbol = Symbol(axes.free_name(name, axis), name, axis, _least(name) if least is None else int(least))
        symbol.high = getattr(wanted, "max", None)
        symbol.named_by_user = "DYNAMIC" in str(wanted)
        axes.add(symbol)
    elif hasattr(wanted, "root"):
        raise problem(
            "E0303",
            f"{name} axis {axis}: a dimension derived from another ({wanted.__name__}) is found by the capture itself",
            "give the axis a name of its own",
        )
    else:
        high = None if wanted.max is None or wanted.max > 2**62 else int(wanted.max)
        low = int(wanted.min) if isinstance(wanted.min, int) else 1
        axes.add(Symbol(_valid(wanted.__name__), name, axis, low, high, named_by_user=True))


def _valid(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise problem("E0303", f"{name!r} is no name for a dimension", "use letters, digits and underscores")
    return name
