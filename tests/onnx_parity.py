"""Sample calls of the operator table, run by onnxruntime and by PyTorch.

Run as a script it prints what differs: `python tests/onnx_parity.py aten.add.Tensor 'aten.sum*'`.
"""

from __future__ import annotations

import fnmatch
import os
import re
import sys
import zlib
from collections.abc import Collection, Iterator
from typing import Any

import onnxruntime
import random_draws
import torch
import transformers.integrations.moe  # noqa: F401  (registers an operator that has a row)

from modelport.base import core
from modelport.runtimes.onnxruntime import run_session, to_numpy
from modelport.runtimes.sessions import quiet_session
from modelport.values.tolerance import same_values

OPSET = int(os.environ.get("PARITY_OPSET", "23"))
OPTIONS = {
    "weights": "inside",
    "shard_bytes": 0,
    "weights_as_inputs": False,
    "inputs_of_products": {},
    "transpose_weights": True,
    "data_suffix": "_data",
    "producer_version": "test",
    "home": "",
    "metadata": [],
}


def draw(dtype: torch.dtype, size: list[int], below: int, generator: torch.Generator, signed: bool) -> torch.Tensor:
    if dtype == torch.bool:
        return torch.randint(0, 2, size, generator=generator).bool()
    if dtype.is_floating_point or dtype.is_complex:
        wide = torch.complex64 if dtype.is_complex else torch.float32
        numbers = (
            torch.randn(size, generator=generator, dtype=wide)
            if signed
            else torch.rand(size, generator=generator, dtype=wide)
        )
        return numbers.to(dtype)
    if signed and below == 2 and dtype.is_signed:
        return torch.randint(-5, 6, size, generator=generator).to(dtype)
    return torch.randint(0, below, size, generator=generator).to(dtype)


def has_values(op: str) -> bool:
    """Memory that nobody filled has no values to compare."""
    return not op.split(".")[1].startswith(("empty", "new_empty"))


def close(got: torch.Tensor, want: torch.Tensor) -> str:
    if got.dtype != want.dtype:
        return f"{got.dtype} instead of {want.dtype}"
    if got.shape != want.shape:
        return f"{list(got.shape)} instead of {list(want.shape)}"
    low = want.dtype in (torch.float16, torch.bfloat16)
    if same_values(got, want, 2e-2 if low else None):
        return ""
    # Operands are of the order of 1: what cancels to zero (lgamma at 1) is rounded as they are.
    if want.is_floating_point() and torch.allclose(got.double(), want.double(), rtol=0, atol=1e-6, equal_nan=True):
        return ""
    return f"values differ: {got.flatten()[:6].tolist()} instead of {want.flatten()[:6].tolist()}"


def draw_operands(op: str, operands: list[tuple], generator: torch.Generator, signed: bool) -> dict[str, torch.Tensor]:
    inputs = {name: draw(dtype, size, below, generator, signed) for name, dtype, size, below in operands}
    if "searchsorted" in op or "bucketize" in op:  # they look things up in what is sorted
        inputs = {name: x.sort(-1).values if x.dim() else x for name, x in inputs.items()}
    if "grouped_mm" in op:  # the groups cover all rows
        rows = next(iter(inputs.values())).shape[-2]
        for name, x in inputs.items():
            if x.dtype == torch.int32:
                inputs[name] = torch.linspace(rows // 2, rows, x.numel()).to(torch.int32)
    if "max_unpool" in op:  # torch promises no order for values that meet at one place: all of a channel are equal
        for name, x in inputs.items():
            if x.is_floating_point():
                inputs[name] = x[..., :1, :1].expand(x.shape).contiguous()
    return inputs


def run_sample(op: str, program: Any, operands: list[tuple], seed: int, opset: int, optimize: bool) -> str:
    """What differs; empty if nothing does."""
    program = with_number_as_tensor(program)
    generator = torch.Generator().manual_seed(seed)
    torch.default_generator.manual_seed(seed)  # torch.manual_seed writes down the stack, for other devices: 4 ms
    for signed in (True, False):  # negative numbers where the operator takes them
        inputs = draw_operands(op, operands, generator, signed)
        try:
            program.run(list(inputs.values()), None)
            break
        except Exception:
            if not signed:
                raise
    lowered = core.lower_onnx(program, opset, optimize)
    session = quiet_session(lowered.bytes(OPTIONS, {}, {}))
    feeds = {name: to_numpy(x) for name, x in inputs.items()}

    def ours() -> list[torch.Tensor]:
        # Each run takes the next seed, and the first numbers after neighbouring seeds are nearly the same.
        onnxruntime.set_seed(int(torch.randint(0, 2**31, (), generator=generator)))
        return run_session(session, lowered.outputs(), feeds, lowered.output_dtypes())

    def theirs() -> list[torch.Tensor]:
        return [as_onnx_has_it(value) for value in program.run(list(inputs.values()), None)[0]]

    if not has_values(op):
        kinds = [[(x.dtype, x.shape) for x in results] for results in (ours(), theirs())]
        return "" if kinds[0] == kinds[1] else f"{kinds[0]} instead of {kinds[1]}"
    if random_draws.is_random(op, theirs):
        return random_draws.difference(op, ours, theirs)
    for i, (g, w) in enumerate(zip(ours(), theirs(), strict=True)):
        if problem := close(g, w):
            return f"result {i}: {problem}"
    return ""


_NUMBER = re.compile(r" : (int|float|bool) (\w+)\n  return y0 = %1\n")
_OF_NUMBER = {"int": ("i64", "{}"), "float": ("f64", "real({})"), "bool": ("bool", "bool({})")}


def with_number_as_tensor(program: Any) -> Any:
    """A number that was read from a tensor is no result of an ONNX graph: a tensor is made of it, as a model would."""
    found = _NUMBER.search(program.text())
    if found is None:
        return program
    kind, number = _OF_NUMBER[found[1]]
    made = f"  %2 = aten.scalar_tensor(s={number.format(found[2])}, dtype={kind}) : {kind}[]\n  return y0 = %2\n"
    return core.parse_graph(program.text().replace("  return y0 = %1\n", made))


def as_onnx_has_it(value: torch.Tensor) -> torch.Tensor:
    """A complex number is a pair."""
    return torch.view_as_real(value.resolve_conj()) if value.is_complex() else value


def mismatches(
    op: str, opset: int = OPSET, optimize: bool = True, only: Collection[int] | None = None
) -> Iterator[str]:
    for index, (text, program, operands) in enumerate(core.sample_programs(op)):
        if only is not None and index not in only:
            continue
        try:
            found = run_sample(op, program, operands, zlib.crc32(text.encode()) + index, opset, optimize)
        except Exception as error:  # every way to fail is a line of the report
            found = f"{type(error).__name__}: {error}"
        if found:
            yield f"{op}({text}): {found}"


def mismatches_of_older(op: str, opsets: Collection[int]) -> Iterator[str]:
    """In each opset the samples that become other nodes than in those before; the first, where none does."""
    programs = [with_number_as_tensor(program) for _, program, _ in core.sample_programs(op)]
    seen = [{str(core.lower_onnx(program, OPSET, True))} for program in programs]
    for opset in opsets:
        texts = [str(core.lower_onnx(program, opset, True)) for program in programs]
        other = [i for i, text in enumerate(texts) if text not in seen[i]]
        yield from mismatches(op, opset, only=other or [0])
        for known, text in zip(seen, texts, strict=True):
            known.add(text)


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
