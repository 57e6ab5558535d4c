"""`modelport run --inputs FILE`: a model that is called once, with tensors of a file; what it gives, in numbers."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from ..base.errors import problem
from ..running import OpeningModel
from .console import Console, say

_SHOWN = 6  # values of a tensor


def refuse_both(args: Any) -> None:
    """A prompt is read into inputs, and here they are given."""
    given = [name for name in ("prompt", "image", "audio") if getattr(args, name)]
    if args.inputs is not None and given:
        raise problem("E0306", f"--inputs has all that the model takes, and there is a {given[0]} too", "leave one out")
    if args.outputs is None:
        return
    if args.inputs is None:
        what, way = "--outputs keeps the tensors that a model gives for --inputs", "name them: --inputs FILE"
    elif Path(args.outputs).suffix not in (".safetensors", ".npz"):
        what = f"{args.outputs} is no kind of file that tensors are written to"
        way = "--outputs FILE.safetensors, or FILE.npz"
    else:
        return
    raise problem("E0306", what, way)


def run(args: Any, console: Console, opening: OpeningModel, inputs: dict[str, Any]) -> bool:
    from ..base.structure import flatten
    from ..exporters.onnx_names import input_name

    with console.stage("load"):
        model = opening.model()
    flat: dict[str, Any] = dict(flatten(inputs).tensors())
    named = {name if name in model.input_names else input_name(name): value for name, value in flat.items()}
    with console.stage("run"):
        results = model(**named)
    if args.outputs is not None:
        _write(Path(args.outputs), results)
    rows = {name: _facts(tensor) for name, tensor in results.items()}
    if console.as_json:
        seconds = {name: round(seconds, 4) for name, seconds in console.seconds.items()}
        console.result("", {"ok": True, "outputs": rows, "seconds": seconds})
    else:
        say("\n".join(f"{name}: {_text(row)}" for name, row in rows.items()))
    return True


def _facts(tensor: Any) -> dict[str, Any]:
    numbers = tensor.detach()
    is_complex, is_bool = numbers.is_complex(), str(numbers.dtype) == "torch.bool"
    measured = numbers.abs() if is_complex else numbers.double() if not is_bool else numbers.long()
    row: dict[str, Any] = {"dtype": str(tensor.dtype).removeprefix("torch."), "shape": list(tensor.shape)}
    if tensor.numel():
        row |= {"min": float(measured.min()), "max": float(measured.max())}
        row["mean"] = float(measured.double().mean())
    first = numbers.flatten()[:_SHOWN].tolist()
    return row | {"first": [str(value) for value in first] if is_complex else first}


def _text(row: dict[str, Any]) -> str:
    sizes = ", ".join(map(str, row["shape"]))
    text = f"{row['dtype']}[{sizes}]"
    if "mean" in row:
        text += f"  {row['min']:.4g} to {row['max']:.4g}, mean {row['mean']:.4g}"
    shown = ", ".join(f"{value:.4g}" if isinstance(value, float) else str(value) for value in row["first"])
    return f"{text}  [{shown}{', ...' if row['shape'] and math.prod(row['shape']) > _SHOWN else ''}]"


def _write(path: Path, results: Any) -> None:
    tensors = {name: tensor.detach().contiguous() for name, tensor in results.items()}
    if path.suffix == ".npz":
        import numpy as np

        np.savez(path, **{name: tensor.numpy() for name, tensor in tensors.items()})
        return
    from safetensors.torch import save_file

    save_file(tensors, path)
