"""An artifact in onnxruntime: which sizes it takes, how the model's inputs and outputs are called in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from ..artifacts.artifact import Artifact
from ..artifacts.limits import CallLimits
from ..base.errors import ExportError, problem
from ..base.item_lists import as_in_graph
from ..base.structure import flatten
from ..exporters.onnx_names import input_name, output_names
from ..runtimes.onnxruntime import run_session, shape_of, to_numpy
from ..runtimes.sessions import needs_onnxruntime, session_with_outputs
from ..weights.checkpoint import DTYPES


class Runner:
    """Runs one artifact with the model's own inputs; results by the model's own output names."""

    def __init__(self, artifact: Artifact, names: Mapping[str, str] | None = None):
        """`names` are those that the export changed, as OnnxConfig has them."""
        needs_onnxruntime()
        self.artifact = artifact
        self._names = dict(names or {})
        self.inputs = artifact.inputs
        artifact.refuse_other_weights()
        try:
            self._call = CallLimits(artifact.limits)
            self.session = session_with_outputs(artifact.path, self._call.check_outputs)
        except ExportError:
            raise
        except Exception as error:  # onnxruntime's exceptions have no common class
            raise _refused(artifact, error) from error

    def feeds(self, inputs: Mapping[str, Any]) -> dict[str, torch.Tensor]:
        """The tensors that the file takes, by its names for them."""
        flat = {self._called(name): value for name, value in flatten(dict(inputs)).tensors().items()}
        names = [row["name"] for row in self.inputs]
        missing = [name for name in names if name not in flat]
        unknown = [name for name in flat if name not in names]
        if missing or unknown:
            lacks = f"needs {', '.join(missing)}, which the inputs do not have" if missing else ""
            more = f"does not take {', '.join(unknown)}" if unknown else ""
            raise problem(
                "E0301",
                f"{self.artifact.path} {' and '.join(filter(None, (lacks, more)))}",
                f"it takes: {', '.join(names)}",
            )
        return {row["name"]: flat[row["name"]] for row in self.inputs}

    def _called(self, name: str) -> str:
        """What the file calls an input: tensors of caches have names of their own there."""
        ours = input_name(name)
        return self._names.get(ours, ours)

    def drop_unknown(self, inputs: dict[str, Any]) -> None:
        """Leaves out optional inputs that the file was exported without."""
        taken = {row["name"] for row in self.inputs}
        for name in list(inputs):
            flat = flatten({name: inputs[name]}).tensors()
            if flat and not any(self._called(leaf) in taken for leaf in flat):
                del inputs[name]

    def axes(self, feeds: Mapping[str, torch.Tensor]) -> dict[str, int]:
        """The sizes of the named axes."""
        sizes: dict[str, int] = {}
        for row in self.inputs:
            for axis, size in zip(row["shape"] or (), feeds[row["name"]].shape, strict=False):
                if axis.isidentifier():
                    sizes.setdefault(axis, size)
        return sizes

    def outside(self, feeds: Mapping[str, torch.Tensor]) -> str | None:
        """Why the file does not take these sizes, by what it says of itself."""
        for row in self.inputs:
            tensor = feeds[row["name"]]
            for axis, size in zip(row["shape"] or (), tensor.shape, strict=False):
                if axis.isdecimal() and int(axis) != size:
                    return f"{row['name']} has a size of {size} where the file has {axis}"
        limits = self.artifact.limits
        if limits is None:
            return None
        arrays = {name: to_numpy(value) for name, value in feeds.items()}
        return limits.broken_by([shape_of(arrays[name]) for name in limits.inputs])

    def run(self, feeds: Mapping[str, torch.Tensor]) -> list[torch.Tensor]:
        """Every call from the state that the model was exported with. Raises E0304 where the data is another case."""
        outputs = self.artifact.outputs
        names, dtypes = [row["name"] for row in outputs], [DTYPES.get(row["dtype"]) for row in outputs]
        arrays = {name: to_numpy(value) for name, value in feeds.items()}
        checks = self._call.check_outputs
        results = run_session(self.session, [*names, *checks], arrays, dtypes + [torch.bool] * len(checks))
        if self._call.limits is not None and checks:
            self._call.limits.check_data([bool(value.all()) for value in results[len(names) :]])
        return results[: len(names)]

    def paired(self, results: list[torch.Tensor], wanted: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
        """(name, result, wanted value) of each output; None for the one of the two that is not there."""
        renamed = output_names(wanted, [row["name"] for row in self.inputs])
        ours = {name: renamed.get(name, name) for name in wanted}
        by_name = {self._names.get(ours[name], ours[name]): value for name, value in wanted.items()}
        names = [row["name"] for row in self.artifact.outputs]
        by_name = as_in_graph(by_name, dict(zip(names, results, strict=True)))
        tensors = [value for value in wanted.values() if isinstance(value, torch.Tensor)]
        if not set(names) & set(by_name) and len(tensors) == len(names):  # all of them renamed: the order is left
            by_name = dict(zip(names, tensors, strict=True))
        rows = []
        for name, result in zip(names, results, strict=True):
            want = by_name.pop(name, None)
            want = want if want is None or isinstance(want, torch.Tensor) else torch.tensor(want)
            if want is not None and want.is_complex() and result.shape[-1:] == (2,):  # ONNX has pairs of reals
                result = torch.view_as_complex(result.contiguous())
            rows.append((name, result, want))
        return rows + [(name, None, want) for name, want in by_name.items() if isinstance(want, torch.Tensor)]


def _refused(artifact: Artifact, error: Exception) -> ExportError:
    text = " ".join(str(error).split())
    ways = ["export it again"]
    if "NOT_IMPLEMENTED" in text:
        ways = ["export in another type: --dtype fp32", "export without a check, for a runtime that has it: --no-check"]
    return problem("E0401", f"onnxruntime does not load {artifact.path}: {text}", *ways)
