"""Whether a call is inside what a capture says of itself: fixed sizes, ranges, conditions, plain arguments."""

from __future__ import annotations

from typing import Any

import torch

from .program import FuzzProgram

_FUNCTIONS = {"min": min, "max": max, "abs": abs, "__builtins__": {}}


def inside(program: FuzzProgram, captured: Any, arguments: dict[str, Any]) -> bool:
    tensors = _flat(arguments)
    sizes: dict[str, int] = {}
    for name, _, axes in captured.program.inputs():
        if name not in tensors or len(axes) != tensors[name].dim():
            return False
        for text, size in zip(axes, tensors[name].shape, strict=True):
            if text.isidentifier() and sizes.setdefault(text, size) != size:
                return False
    for name, _, axes in captured.program.inputs():
        for text, size in zip(axes, tensors[name].shape, strict=True):
            if _value(text, sizes) not in (size, None):
                return False
    for dim in captured.program.dims():
        size = sizes.get(dim["name"])
        if size is not None and not (dim["lo"] <= size and (dim["hi"] is None or size <= dim["hi"])):
            return False
    if any(_value(guard["condition"], sizes) is False for guard in captured.guards if guard["effect"] == "kept"):
        return False
    return all(_same(arguments.get(name), value) for name, value in program.plain.items())


def numbers_in(captured: Any) -> list[int]:
    """Sizes that the capture speaks of: bounds and the constants of conditions."""
    found = {0, 1}
    for dim in captured.program.dims():
        found |= {n for n in (dim["lo"], dim["hi"]) if n is not None and n < 64}
    for guard in captured.guards:
        digits = "".join(c if c.isdigit() else " " for c in guard["condition"]).split()
        found |= {int(n) for n in digits if len(n) < 3 and int(n) < 64}
    return sorted(found)


def _flat(arguments: dict[str, Any]) -> dict[str, torch.Tensor]:
    flat = {}
    for name, value in arguments.items():
        parts = {f"{name}.{i}": part for i, part in enumerate(value)} if isinstance(value, tuple) else {name: value}
        flat |= {key: part for key, part in parts.items() if isinstance(part, torch.Tensor)}
    return flat


def _value(text: str, sizes: dict[str, int]) -> Any:
    """None where it speaks of what the data decides."""
    try:
        return eval(text, dict(_FUNCTIONS), sizes)
    except (NameError, SyntaxError, ZeroDivisionError):
        return None


def _same(given: Any, known: Any) -> bool:
    if isinstance(known, torch.Tensor) or isinstance(given, torch.Tensor):
        return isinstance(known, torch.Tensor) and isinstance(given, torch.Tensor) and given.shape == known.shape
    return given == known
