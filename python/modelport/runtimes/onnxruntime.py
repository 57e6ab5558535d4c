"""Tensors in and out of onnxruntime, in every type."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

# numpy has no such types; onnxruntime takes and gives their bits, under ONNX's number of the type.
_BITS = {
    torch.bfloat16: (torch.int16, 16),
    torch.float8_e4m3fn: (torch.int8, 17),
    torch.float8_e5m2: (torch.int8, 19),
}
_INT64 = 7  # ONNX's number


def run_session(
    session: Any, names: Sequence[str], feeds: Mapping[str, Any], dtypes: Sequence[torch.dtype]
) -> list[torch.Tensor]:
    """The outputs by these names as tensors of these types."""
    if not any(dtype in _BITS for dtype in dtypes):
        return [from_numpy(x, d) for x, d in zip(session.run(list(names), dict(feeds)), dtypes, strict=True)]
    import onnxruntime

    given = {
        name: x if isinstance(x, onnxruntime.OrtValue) else onnxruntime.OrtValue.ortvalue_from_numpy(x)
        for name, x in feeds.items()
    }
    results = session.run_with_ort_values(list(names), given)
    return [_from_value(x, dtype) for x, dtype in zip(results, dtypes, strict=True)]


def to_numpy(tensor: torch.Tensor) -> Any:
    """As onnxruntime takes it: complex numbers are pairs of reals."""
    tensor = tensor.detach().cpu()
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    if tensor.dtype in _BITS:
        import onnxruntime

        bits, kind = _BITS[tensor.dtype]
        array = tensor.contiguous().view(bits).numpy()
        return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(array, kind)
    return tensor.contiguous().numpy()


def shape_of(value: Any) -> list[int]:
    """Of an array, or of a value in onnxruntime's memory."""
    return list(value.shape() if callable(value.shape) else value.shape)


def from_numpy(array: Any, dtype: torch.dtype) -> torch.Tensor:
    """The tensor that a result stands for; `dtype` is what the graph says it is."""
    tensor = torch.from_numpy(np.array(array))
    return torch.view_as_complex(tensor) if dtype.is_complex else tensor


def _from_value(value: Any, dtype: torch.dtype) -> torch.Tensor:
    if dtype not in _BITS:
        return from_numpy(value.numpy(), dtype)
    if value.tensor_size_in_bytes() == 0:
        return torch.empty(value.shape(), dtype=dtype)
    return torch.frombuffer(bytearray(memory_of(value)), dtype=dtype).view(value.shape())


def integers_value(array: Any) -> Any:
    """An array of int64 as onnxruntime sees it: the same memory. Saying the type takes less time than being asked."""
    from onnxruntime import OrtValue

    return OrtValue.ortvalue_from_numpy_with_onnx_type(array, _INT64)


def memory_of(value: Any) -> Any:
    """The bytes of a value where they lie: `raw` reads them, as long as the value is there."""
    size = value.tensor_size_in_bytes()
    return (ctypes.c_char * size).from_address(value.data_ptr()) if size else (ctypes.c_char * 0)()


class OrtMemory:
    """Tensors and OrtValues over the same memory."""

    def to_value(self, tensor: torch.Tensor) -> Any:
        """The tensor as onnxruntime sees it: the same memory."""
        from onnxruntime import OrtValue

        tensor = tensor.detach().contiguous()
        if tensor.dtype == torch.bool:  # onnxruntime does not know DLPack's code for it
            return OrtValue.ortvalue_from_numpy(tensor.numpy())
        return OrtValue.from_dlpack(tensor)

    def to_tensor(self, value: Any) -> torch.Tensor:
        """The same memory as a tensor."""
        if value.data_type() == "tensor(bool)":
            return torch.from_numpy(value.numpy())
        return torch.from_dlpack(value)
