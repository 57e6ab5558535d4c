"""An OpenVINO model in its runtime, held against its model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from ..artifacts.ir import BEAMS, IrFile
from ..runtimes.openvino import IrSession
from .runner import Runner


class OpenvinoRunner(Runner):
    """What `Runner` is for ONNX, of which inputs and outputs have their names."""

    def __init__(self, artifact: IrFile, names: Mapping[str, str] | None = None):
        self.artifact: Any = artifact
        self._names = dict(names or {})
        self.session = IrSession(artifact.path, {})
        self.inputs = [row for row in artifact.inputs if row["name"] != BEAMS]

    def outside(self, feeds: Mapping[str, torch.Tensor]) -> str | None:
        limits = self.artifact.limits
        return None if limits is None else limits.broken_by([list(feeds[name].shape) for name in limits.inputs])

    def run(self, feeds: Mapping[str, torch.Tensor]) -> list[torch.Tensor]:
        """Every call from the state that the model was exported with."""
        self.session.reset()
        return list(self.session.tensors(feeds).values())
