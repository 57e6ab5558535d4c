"""What one call of one way says, next to what eager gave."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import torch

from .ways import Result

_TOLERANCE = {torch.float16: 2e-2, torch.bfloat16: 2e-2}


class Verdict(StrEnum):
    SAME = "same"
    REFUSED = "refused outside"
    BOTH_FAIL = "fails as the model"
    BY_DATA = "refused by data"
    REFUSED_INSIDE = "refused inside"
    BARE = "bare exception"
    WHERE_MODEL_FAILS = "values where the model fails"
    DIFFERENT = "SILENTLY DIFFERENT"


def difference(got: Result, want: Result, in_graph: list[bool]) -> str:
    """Empty if they are the same. A way without structure gives only the tensors that are computed."""
    leaves = want.leaves
    if got.structure is None:
        if len(in_graph) != len(leaves):
            return f"{len(in_graph)} leaves instead of {len(leaves)}"
        leaves = [x for x, inside in zip(leaves, in_graph, strict=True) if inside and isinstance(x, torch.Tensor)]
    elif got.structure != want.structure:
        return f"structure {got.structure} instead of {want.structure}"
    if len(got.leaves) != len(leaves):
        return f"{len(got.leaves)} results instead of {len(leaves)}"
    found = (_of_leaf(g, w) for g, w in zip(got.leaves, leaves, strict=True))
    return next((f"result {i}: {what}" for i, what in enumerate(found) if what), "")


def _of_leaf(got: Any, want: Any) -> str:
    if not isinstance(want, torch.Tensor):
        same = not isinstance(got, torch.Tensor) and got == want
        return "" if same else f"{got!r} instead of {want!r}"
    if not isinstance(got, torch.Tensor):
        return f"{got!r} instead of a tensor"
    if got.dtype != want.dtype:
        return f"{got.dtype} instead of {want.dtype}"
    if got.shape != want.shape:
        return f"{list(got.shape)} instead of {list(want.shape)}"
    if want.dtype.is_floating_point:
        tolerance = _TOLERANCE.get(want.dtype, 1e-4)
        same = torch.allclose(got, want, atol=tolerance, rtol=tolerance, equal_nan=True)
    else:
        same = torch.equal(got, want)
    return "" if same else f"values {got.flatten()[:6].tolist()} instead of {want.flatten()[:6].tolist()}"
