"""The C++ extension, loaded after torch and told about our exception."""

from __future__ import annotations

import torch

from .. import _artifact
from .errors import ExportError, problem
from .versions import other_torch


def _refuse_other_torch() -> None:
    """libtorch's C++ ABI changes with every minor release: beside another one, the extension would lack symbols."""
    if wrong := other_torch(_artifact.torch_version, torch.__version__):
        what, ways = wrong
        raise problem("E0307", what, *ways, "modelport doctor")


_refuse_other_torch()
from .. import _modelport  # noqa: E402

_modelport.set_exception_class(ExportError)

Session = _modelport.Session
Program = _modelport.Program
Paused = _modelport.Paused
QuantizationScheme = _modelport.QuantizationScheme
concerns_graph = _modelport.concerns_graph
enter_module = _modelport.enter_module
executorch_cell = _modelport.executorch_cell
is_recording = _modelport.is_recording
leave_module = _modelport.leave_module
lower_executorch = _modelport.lower_executorch
lower_onnx = _modelport.lower_onnx
onnx_cell = _modelport.onnx_cell
op_names = _modelport.op_names
parse_graph = _modelport.parse_graph
pt2_parts = _modelport.pt2_parts
quantize = _modelport.quantize
read_number = _modelport.read_number
read_pt2 = _modelport.read_pt2
real_tensor = _modelport.real_tensor
sample_programs = _modelport.sample_programs
sym_constant = _modelport.sym_constant
sym_hint = _modelport.sym_hint
sym_is_ours = _modelport.sym_is_ours
sym_reads_data = _modelport.sym_reads_data
sym_round = _modelport.sym_round
sym_trunc = _modelport.sym_trunc
write_pt2 = _modelport.write_pt2
