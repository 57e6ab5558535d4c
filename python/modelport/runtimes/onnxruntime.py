"""onnxruntime as we use it: sessions without chatter, tensors in and out in every type."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..artifacts.artifact import further_outputs, refuse_outside, settable_flag
from ..base.errors import problem

# numpy has no such types; onnxruntime takes and gives their bits, under ONNX's number of the type.
_BITS = {
    torch.bfloat16: (torch.int16, 16),
    torch.float8_e4m3fn: (torch.int8, 17),
    torch.float8_e5m2: (torch.int8, 19),
}
_INT64 = 7  # ONNX's number


def quiet_session(
    model: bytes | str | os.PathLike[str],
    threads: int = 0,
    weights_in: str | os.PathLike[str] | None = None,
    **settings: Any,
) -> Any:
    """A session on a file, or on bytes whose weights may lie in the folder `weights_in`. `settings` are attributes of
    SessionOptions, or entries of its configuration, whose names have dots."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    if not threads and os.environ.get("OMP_NUM_THREADS"):
        threads = torch.get_num_threads()  # onnxruntime itself does not look at the variable that torch obeys
    if threads:
        options.intra_op_num_threads = threads
    if weights_in is not None:
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", os.fspath(weights_in))
    for name, value in settings.items():
        if "." in name:
            options.add_session_config_entry(name, str(value))
        else:
            setattr(options, name, value)
    source = model if isinstance(model, bytes) else os.fspath(model)
    if not isinstance(model, bytes):
        refuse_outside(model)
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def session_with_outputs(path: Path, names: Sequence[str], flag: str | None = None, **settings: Any) -> Any:
    """A session on a file that gives values of these names besides its outputs, and takes a flag besides its inputs."""
    if not names and flag is None:
        return quiet_session(path, **settings)
    refuse_outside(path)
    more = further_outputs(names) + (settable_flag(flag) if flag else b"")
    return quiet_session(path.read_bytes() + more, weights_in=path.parent, **settings)


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


def needs_onnxruntime() -> None:
    try:
        import onnxruntime  # noqa: F401
    except ImportError as error:
        raise problem(
            "E0307",
            "a check runs the artifact in onnxruntime, which is not installed",
            "pip install onnxruntime",
            "export without a check: --no-check",
        ) from error


def check_options(options: Mapping[str, Any]) -> None:
    from onnxruntime import SessionOptions

    unknown = [name for name in options if "." not in name and not hasattr(SessionOptions, name)]
    if unknown:
        known = [name for name in vars(SessionOptions) if isinstance(vars(SessionOptions)[name], property)]
        what = f"onnxruntime's SessionOptions has no {', '.join(unknown)}"
        raise problem("E0306", what, f"it has: {', '.join(known)}" if known else "leave it out")


def as_written() -> dict[str, Any]:
    """Settings of a session that computes what the file says, without onnxruntime's own rewriting."""
    import onnxruntime

    return {"graph_optimization_level": onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL}
