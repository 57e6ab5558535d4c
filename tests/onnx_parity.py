"""Sample calls of the operator table, run by onnxruntime and by PyTorch.

Run as a script it prints what differs: `python tests/onnx_parity.py aten.add.Tensor 'aten.sum*'`.
"""

from __future__ import annotations

import fnmatch
import os
import sys
import zlib
from collections.abc import Iterator

import torch

from modelport import core
from modelport.exporters.onnx_session import from_numpy, quiet_session, to_numpy

OPSET = int(os.environ.get("PARITY_OPSET", "23"))
OPTIONS = {
    "weights": "inside",
    "shard_bytes": 0,
    "weights_as_inputs": False,
    "transpose_weights": True,
    "data_suffix": "_data",
    "producer_version": "test",
    "metadata": [],
}


def draw(dtype: torch.dtype, size: list[int], below: int, generator: torch.Generator, signed: bool) -> torch.Tensor:
    if dtype == torch.bool:
        return torch.randint(0, 2, size, generator=generator).bool()
    if dtype.is_floating_point or dtype.is_complex:
        wide = torch.complex64 if dtype.is_complex else torch.float32
        numbers = torch.randn(size, generator=generator, dtype=wide) if signed else torch.rand(size, generator=generator, dtype=wide)
        return numbers.to(dtype)
    if signed and below == 2 and dtype.is_signed:
        return torch.randint(-5, 6, size, generator=generator).to(dtype)
    return torch.randint(0, below, size, generator=generator).to(dtype)


def is_random(op: str) -> bool:
    stem = op.split(".")[1]
    return stem.startswith(("rand", "normal", "bernoulli", "multinomial", "exponential", "uniform", "rrelu"))


def close(got: torch.Tensor, want: torch.Tensor) -> str:
    if got.dtype != want.dtype:
        return f"{got.dtype} instead of {want.dtype}"
    if got.shape != want.shape:
        return f"{list(got.shape)} instead of {list(want.shape)}"
    half = want.dtype in (torch.float16, torch.bfloat16)
    tolerance = 2e-2 if half else 1e-4
    if want.dtype.is_floating_point or want.dtype.is_complex:
        same = torch.allclose(got, want, atol=tolerance, rtol=tolerance, equal_nan=True)
    else:
        same = torch.equal(got, want)
    return "" if same else f"values differ: {got.flatten()[:6].tolist()} instead of {want.flatten()[:6].tolist()}"


def run_sample(program, operands: list[tuple], seed: int, opset: int, optimize: bool, random: bool) -> str:
    """What differs; empty if nothing does."""
    generator = torch.Generator().manual_seed(seed)
    want = None
    for signed in (True, False):  # negative numbers where the operator takes them
        inputs = {name: draw(dtype, size, below, generator, signed) for name, dtype, size, below in operands}
        try:
            want, _ = program.run(list(inputs.values()), None)
            break
        except Exception:
            if not signed:
                raise
    model = core.lower_onnx(program, opset, optimize).bytes(OPTIONS)
    session = quiet_session(model)
    got = session.run(None, {name: to_numpy(x) for name, x in inputs.items()})
    for i, (a, b) in enumerate(zip(got, want, strict=True)):
        b = torch.as_tensor(b)
        got_tensor = from_numpy(a, b.dtype)
        problem = close(got_tensor * 0, b * 0) if random else close(got_tensor, b)
        if problem:
            return f"result {i}: {problem}"
    return ""


def mismatches(op: str, opset: int = OPSET, optimize: bool = True) -> Iterator[str]:
    for index, (text, program, operands) in enumerate(core.sample_programs(op)):
        try:
            found = run_sample(program, operands, zlib.crc32(text.encode()) + index, opset, optimize, is_random(op))
        except Exception as error:  # every way to fail is a line of the report
            found = f"{type(error).__name__}: {error}"
        if found:
            yield f"{op}({text}): {found}"


def main() -> None:
    patterns = sys.argv[1:] or ["*"]
    names = [n for n in core.op_names() if any(fnmatch.fnmatch(n, p) for p in patterns)]
    bad = 0
    for name in names:
        filled, reason = core.onnx_cell(name)
        if reason:
            print(f"{name}: refused, {reason}")
            continue
        if not filled:
            print(f"{name}: no cell")
            continue
        lines = list(mismatches(name))
        bad += bool(lines)
        for line in lines[:3]:
            print(line[:400])
    print(f"{len(names)} operators, {bad} differ")


if __name__ == "__main__":
    main()
