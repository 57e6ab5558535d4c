"""The C++ extension, loaded after torch and told about our exception."""

from __future__ import annotations

import torch  # noqa: F401  (its libraries must be in the process before ours)

from . import _modelport
from .errors import ExportError

_modelport.set_exception_class(ExportError)

Session = _modelport.Session
Program = _modelport.Program
Paused = _modelport.Paused
parse_graph = _modelport.parse_graph
real_tensor = _modelport.real_tensor
write_pt2 = _modelport.write_pt2
read_pt2 = _modelport.read_pt2
lower_onnx = _modelport.lower_onnx
op_names = _modelport.op_names
onnx_cell = _modelport.onnx_cell
sample_programs = _modelport.sample_programs
