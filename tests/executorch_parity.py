"""Sample calls of the operator table, run by ExecuTorch's runtime and by PyTorch.

Run as a script it prints what differs: `python tests/executorch_parity.py aten.add.Tensor 'aten.sum*'`; with
`--xnnpack` as first argument, XNNPACK takes what it can.
"""

from __future__ import annotations

import fnmatch
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import random_draws
import torch
from executorch_process import RuntimeProcess
from onnx_parity import as_onnx_has_it as as_pairs
from onnx_parity import close, draw_operands, has_values, with_number_as_tensor

from modelport import ExportError
from modelport.base import core
from modelport.exporters.executorch_file import Method, write_executorch
from modelport.generation.custom_attention import define_operators

UNDECIDED = "its row says nothing else"


@dataclass
class Sample:
    """One call of a row: as text, lowered, its operands, and what torch makes of them."""

    text: str
    program: Any
    lowered: Any
    inputs: list[torch.Tensor]
    wanted: list[Any]

    @property
    def bounds(self) -> dict[str, int]:
        """Room for more than the operands have, as in a file that serves many sizes."""
        return {dim["name"]: 512 if dim["from_data"] else dim["hint"] + 3 for dim in self.lowered.dims()}


@dataclass
class Findings:
    """What differs, and what the row's cell refuses, a line each."""

    wrong: list[str]
    refused: list[str]


def results_of(op: str, program: Any, operands: list[tuple], seed: int) -> tuple[list[torch.Tensor], list[Any]]:
    """Operands, and what torch makes of them: negative numbers where the operator takes them."""
    generator = torch.Generator().manual_seed(seed)
    for signed in (True, False):
        inputs = list(draw_operands(op, operands, generator, signed).values())
        try:
            torch.default_generator.manual_seed(seed)
            return inputs, program.run(inputs, None)[0]
        except Exception:
            if not signed:
                raise
    raise AssertionError("unreachable")


def lower_to_kernels(program: Any) -> Any:
    return core.lower_executorch(program)


def lower_to_xnnpack(program: Any) -> Any:
    """XNNPACK gets everything that it takes, single nodes too."""
    return core._modelport.lower_xnnpack(program, None, None, 1)[0]


def samples_of(op: str, findings: Findings, lower: Callable[[Any], Any] = lower_to_kernels) -> list[Sample]:
    samples = []
    for index, (text, program, operands) in enumerate(core.sample_programs(op)):
        line = f"{op}({text})"
        try:
            lowered = lower(program)
        except ExportError as error:
            (findings.wrong if UNDECIDED in str(error) else findings.refused).append(f"{line}: {error}")
            continue
        except Exception as error:  # every way to fail is a line of the report
            findings.wrong.append(f"{line}: {type(error).__name__}: {error}")
            continue
        program = with_number_as_tensor(program)
        inputs, wanted = results_of(op, program, operands, zlib.crc32(text.encode()) + index)
        wanted = [as_pairs(value) if isinstance(value, torch.Tensor) else value for value in wanted]
        samples.append(Sample(line, program, lowered, inputs, wanted))
    return samples


def difference(op: str, found: list[Any], wanted: list[Any]) -> str:
    if len(found) != len(wanted):
        return f"{len(found)} results instead of {len(wanted)}"
    for i, (got, want) in enumerate(zip(found, wanted, strict=True)):
        if want is None:  # torch leaves it out on this machine
            continue
        got = got if isinstance(got, torch.Tensor) else torch.tensor(got, dtype=want.dtype)
        if not has_values(op) and (got.dtype, got.shape) == (want.dtype, want.shape):
            continue
        if problem := close(got, want):
            return f"result {i}: {problem}"
    return ""


class Parity:
    """Rows one by one, all in one process of the runtime, which is started again where a kernel ended it."""

    def __init__(self, lower: Callable[[Any], Any] = lower_to_kernels) -> None:
        self._lower = lower
        self._folder = tempfile.TemporaryDirectory()
        self._path = Path(self._folder.name) / "samples.pte"
        self._log = (Path(self._folder.name) / "log").open("w+b")
        self._runtime = RuntimeProcess(self._log)
        define_operators()

    def close(self) -> None:
        self._runtime.close()
        self._log.close()
        self._folder.cleanup()

    def check(self, op: str) -> Findings:
        findings = Findings([], [])
        samples = samples_of(op, findings, self._lower)
        for sample, found in zip(samples, self._found(op, samples), strict=True):
            if found:
                findings.wrong.append(f"{sample.text}: {found}")
        if findings.refused and not samples and not findings.wrong:
            findings.wrong.append(f"{op}: every sample is refused: {findings.refused[0]}")
        return findings

    def _found(self, op: str, samples: list[Sample]) -> list[str]:
        """What differs in each sample."""
        try:
            results = self._run(samples)
        except Exception:  # one by one, to find out which
            return self._found_in_each(op, samples)
        return [self._difference(op, s, found) for s, found in zip(samples, results, strict=True)]

    def _found_in_each(self, op: str, samples: list[Sample]) -> list[str]:
        found = []
        for sample in samples:
            start = self._log.seek(0, 2)
            try:
                (results,) = self._run([sample])
                found.append(self._difference(op, sample, results))
            except Exception as error:
                self._log.seek(start)
                found.append(f"{type(error).__name__}: {error}; {_complaint(self._log.read().decode())}")
        return found

    def _difference(self, op: str, sample: Sample, found: list[Any]) -> str:
        def theirs() -> list[torch.Tensor]:
            return sample.program.run(sample.inputs, None)[0]

        if not random_draws.is_random(op, theirs):
            return difference(op, found, sample.wanted)
        draws = self._draws(sample)
        return random_draws.difference(op, lambda: next(draws), theirs)

    def _draws(self, sample: Sample) -> Iterator[list[Any]]:
        while True:
            yield from self._run([sample], random_draws.DRAWS)

    def _run(self, samples: list[Sample], times: int = 1) -> list[Any]:
        """A file with a method for each sample."""
        if not samples:
            return []
        names = [f"sample_{i}" for i in range(len(samples))]
        methods = [Method(name, s.lowered, bounds=s.bounds) for name, s in zip(names, samples, strict=True)]
        write_executorch(self._path, methods, with_limits=False)
        calls = [(name, list(map(as_pairs, s.inputs))) for name, s in zip(names, samples, strict=True)]
        custom = any(s.text.startswith("modelport.") for s in samples)
        return self._runtime.run(self._path, calls * times, custom_operators=custom)


def _complaint(log: str) -> str:
    """What a kernel says it did not like."""
    lines = [line for line in log.splitlines() if "failed" in line.lower() or "missing" in line.lower()]
    return "; ".join(lines[:2])


def main() -> None:
    with_xnnpack = "--xnnpack" in sys.argv[1:2]
    patterns = sys.argv[2 if with_xnnpack else 1 :] or ["*"]
    names = [n for n in core.op_names() if any(fnmatch.fnmatch(n, p) for p in patterns)]
    if with_xnnpack:
        names = [name for name in names if core._modelport.has_xnnpack_cell(name)]
    parity = Parity(lower_to_xnnpack if with_xnnpack else lower_to_kernels)
    bad = 0
    for name in names:
        filled, reason = core.executorch_cell(name)
        if reason or not filled:
            print(f"{name}: refused, {reason}" if reason else f"{name}: no cell")
            continue
        findings = parity.check(name)
        bad += bool(findings.wrong)
        for line in findings.wrong[:3]:
            print(line.replace("\n", " ")[:400])
        for line in findings.refused[:1]:
            print(f"  {len(findings.refused)} samples refused: " + line.replace("\n", " ")[:200])
    parity.close()
    print(f"{len(names)} operators, {bad} differ")


if __name__ == "__main__":
    main()
