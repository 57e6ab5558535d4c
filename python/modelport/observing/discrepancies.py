"""An ONNX model against the stored calls: their inputs through onnxruntime, the results beside theirs."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch

from ..base.errors import problem
from ..base.item_lists import as_in_graph
from ..checking.tolerance import distance
from ..exporters.onnx_names import input_name, output_names
from ..runtimes.onnxruntime import run_session, to_numpy
from ..runtimes.sessions import quiet_session
from ..values.tolerance import Tolerance, same_values, wide
from .plan import Plan

_DTYPES = {
    "float": torch.float32,
    "double": torch.float64,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "int64": torch.int64,
    "int32": torch.int32,
    "int16": torch.int16,
    "int8": torch.int8,
    "uint8": torch.uint8,
    "bool": torch.bool,
}


class Comparison:
    """Runs the calls of a plan in an ONNX model."""

    def __init__(self, onnx_model: Any, plan: Plan):
        self.plan = plan
        self.session = _session(onnx_model)
        self.inputs = [row.name for row in self.session.get_inputs()]
        self.outputs = [row.name for row in self.session.get_outputs()]
        kinds = [row.type.removeprefix("tensor(").removesuffix(")") for row in self.session.get_outputs()]
        self._dtypes = [_DTYPES.get(kind, torch.float32) for kind in kinds]

    def row(self, call: int, *, atol: float, rtol: float, hist: Sequence[float], skip_none: bool) -> dict[str, Any]:
        tensors = self.plan.tensors(call)
        start = time.perf_counter()
        try:
            feeds = self._feeds(tensors)
            start = time.perf_counter()
            results = run_session(self.session, self.outputs, feeds, self._dtypes)
        except Exception as error:  # what onnxruntime says belongs into the table
            seconds = time.perf_counter() - start
            return {"SUCCESS": False, "error": " ".join(str(error).split()), "ort_duration": seconds}
        seconds = time.perf_counter() - start
        wanted = {n: t for n, t in self.plan.calls.outputs[call].items() if n not in self.plan.settings}
        pairs = self._pairs(results, wanted)
        return compared(pairs, atol=atol, rtol=rtol, hist=hist, skip_none=skip_none) | {"ort_duration": seconds}

    def _feeds(self, tensors: Mapping[str, torch.Tensor]) -> dict[str, Any]:
        every = {input_name(name): tensor for name, tensor in {**self.plan.settings, **tensors}.items()}
        if all(name in every for name in self.inputs):
            return {name: to_numpy(every[name]) for name in self.inputs}
        if len(self.inputs) == len(tensors):  # other names: the order is left
            return {name: to_numpy(tensor) for name, tensor in zip(self.inputs, tensors.values(), strict=True)}
        unknown = [name for name in self.inputs if name not in every]
        raise problem(
            "E0313",
            f"the model takes {', '.join(unknown)}, which the calls do not have",
            f"they have: {', '.join(every)}",
        )

    def _pairs(self, results: Sequence[torch.Tensor], wanted: Mapping[str, torch.Tensor]) -> list[tuple[str, Any, Any]]:
        """(name, result, what the call gave), None for what is not there."""
        renamed = output_names(wanted, self.inputs)
        by_name = {renamed.get(name, name): value for name, value in wanted.items()}
        by_name = as_in_graph(by_name, dict(zip(self.outputs, results, strict=True)))
        if not set(by_name) & set(self.outputs) and len(by_name) == len(self.outputs):
            by_name = dict(zip(self.outputs, by_name.values(), strict=True))
        rows = [(name, got, by_name.pop(name, None)) for name, got in zip(self.outputs, results, strict=True)]
        return rows + [(name, None, want) for name, want in by_name.items()]


def compared(
    pairs: Iterable[tuple[str, Any, Any]], *, atol: float, rtol: float, hist: Sequence[float], skip_none: bool
) -> dict[str, Any]:
    """The largest differences, how many elements differ by more than each bound of `hist`, and the first trouble."""
    row: dict[str, Any] = {"SUCCESS": True, "abs": 0.0, "rel": 0.0, "n": 0, "error": ""}
    row |= {f">{bound}": 0 for bound in hist}
    for name, got, want in pairs:
        trouble = _trouble(name, got, want, skip_none)
        if trouble:
            row["SUCCESS"], row["error"] = False, row["error"] or trouble
        if got is None or want is None or trouble or not want.numel():
            continue
        want = want.to(got.device)
        row["SUCCESS"] = row["SUCCESS"] and _of_one_scale(got, want, atol)
        apart = distance(got, want)
        relative = (apart / (wide(want).abs() + rtol)).nan_to_num(nan=float("inf"), posinf=float("inf"))
        row["abs"] = max(row["abs"], float(apart.max()))
        row["rel"] = max(row["rel"], float(relative.max()))
        row["n"] += want.numel()
        for bound in hist:
            row[f">{bound}"] += int((apart > bound).sum())
    row["SUCCESS"] = row["SUCCESS"] and row["abs"] <= atol and row["rel"] <= rtol
    return row


def _trouble(name: str, got: Any, want: Any, skip_none: bool) -> str:
    if got is None or want is None:
        return (
            "" if skip_none and want is None else f"{name} is {'not given' if got is None else 'no output of the call'}"
        )
    if got.shape != want.shape:
        return f"{name} has the shape {list(got.shape)} instead of {list(want.shape)}"
    return f"{name} is {got.dtype} instead of {want.dtype}" if got.dtype != want.dtype else ""


def _of_one_scale(got: torch.Tensor, want: torch.Tensor, atol: float) -> bool:
    """Bounds in absolute numbers say nothing of an output that is small throughout: its own scale counts, too."""
    usual = Tolerance.of({want.dtype})
    return same_values(got, want, Tolerance(max(usual.atol, atol), usual.cosine))


def described(tensors: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{name}: None" if tensor is None else f"{name}: {str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"
        for name, tensor in tensors.items()
    )


def _session(onnx_model: Any) -> Any:
    """A session of a path, bytes, a ModelProto, or a program of an exporter."""
    if isinstance(onnx_model, bytes | str | os.PathLike):
        return quiet_session(onnx_model)
    if hasattr(onnx_model, "to_bytes"):
        return quiet_session(onnx_model.to_bytes())
    proto = getattr(onnx_model, "model_proto", onnx_model)
    if hasattr(proto, "SerializeToString"):
        return quiet_session(proto.SerializeToString())
    raise problem(
        "E0106", f"a {type(onnx_model).__name__} is no ONNX model", "pass a path, bytes, or what an exporter returned"
    )
