"""onnxruntime as we use it: sessions without chatter, tensors in and out in every type."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import torch

# numpy has no such types; onnxruntime takes and gives their bits.
_BITS = {torch.bfloat16: torch.int16, torch.float8_e4m3fn: torch.int8, torch.float8_e5m2: torch.int8}


def quiet_session(model: bytes | str | os.PathLike[str], threads: int = 0, **settings: Any):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    if threads:
        options.intra_op_num_threads = threads
    for name, value in settings.items():
        setattr(options, name, value)
    source = model if isinstance(model, bytes) else os.fspath(model)
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def to_numpy(tensor: torch.Tensor) -> Any:
    """As onnxruntime takes it: complex numbers are pairs of reals."""
    tensor = tensor.detach().cpu()
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    if tensor.dtype in _BITS:
        import onnxruntime

        bits = tensor.contiguous().view(_BITS[tensor.dtype]).numpy()
        kind = {torch.bfloat16: 16, torch.float8_e4m3fn: 17, torch.float8_e5m2: 19}[tensor.dtype]
        return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, kind)
    return tensor.contiguous().numpy()


def from_numpy(array: Any, dtype: torch.dtype) -> torch.Tensor:
    """The tensor that a result stands for; `dtype` is what the graph says it is."""
    tensor = torch.from_numpy(np.array(array))
    if dtype in _BITS:
        return tensor.view(dtype)
    return torch.view_as_complex(tensor) if dtype.is_complex else tensor
