"""A `.pte` file in ExecuTorch's runtime, held against its model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from ..artifacts.pte import ProgramFile
from ..base.item_lists import as_in_graph
from ..runtimes.executorch import ProgramSession
from .runner import Runner


class ExecutorchRunner(Runner):
    """What `Runner` is for ONNX. Inputs and outputs have the model's own names."""

    def __init__(self, artifact: ProgramFile):
        self.artifact: Any = artifact
        self.inputs = artifact.inputs
        self.session = ProgramSession(artifact.path, artifact.method)

    def _called(self, name: str) -> str:
        return name

    def outside(self, feeds: Mapping[str, torch.Tensor]) -> str | None:
        limits = self.artifact.limits
        return None if limits is None else limits.broken_by([list(feeds[name].shape) for name in limits.inputs])

    def run(self, feeds: Mapping[str, torch.Tensor]) -> list[torch.Tensor]:
        """Every call from the state that the model was exported with."""
        if self.artifact.summary["initial_bytes"]:
            self.session.reset()
        return [torch.as_tensor(value) for value in self.session.values(feeds)]

    def paired(self, results: list[torch.Tensor], wanted: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
        left = as_in_graph(wanted, dict(zip(self.session.outputs, results, strict=True)))
        rows = []
        for name, result in zip(self.session.outputs, results, strict=True):
            want = left.pop(name, None)
            rows.append((name, result, None if want is None else torch.as_tensor(want)))
        return rows + [(name, None, want) for name, want in left.items() if isinstance(want, torch.Tensor)]
