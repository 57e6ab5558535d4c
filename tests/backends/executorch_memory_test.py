"""Random graphs with views and state, run in ExecuTorch's runtime: no memory is taken while somebody needs it."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from executorch_process import RuntimeProcess

from modelport.base import core
from modelport.exporters.executorch_file import Method, write_executorch

pytest.importorskip("executorch")

Values = dict[str, torch.Tensor]


@pytest.fixture(scope="module")
def runtime() -> Iterator[RuntimeProcess]:
    process = RuntimeProcess()
    yield process
    process.close()


SHAPES = {"rows": "n, 4", "columns": "4, n", "flat": "4*n", "square": "4, 4", "line": "16"}
VIEWS = {"rows": "flat", "columns": "flat", "flat": "rows", "square": "line", "line": "square"}
SIZES = {"rows": [-1, 4], "columns": [4, -1], "flat": [-1], "square": [4, 4], "line": [16]}
UNARY = {"relu": torch.relu, "neg": torch.neg, "sigmoid": torch.sigmoid, "tanh": torch.tanh}
BINARY = {"mul": torch.mul, "maximum": torch.maximum, "minimum": torch.minimum}


class RandomGraph:
    """Text of a graph, and the same steps as functions of torch."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.kinds = {"%x": "rows", "%z": "square", "@s": "square", "@t": "square"}
        self.lines: list[str] = []
        self.steps: list[tuple[str, Callable[[Values], torch.Tensor]]] = []
        for _ in range(self.random.randint(5, 25)):
            self.add_step()
        values = list(self.kinds)
        self.outputs = [self.random.choice(values) for _ in range(self.random.randint(1, 3))]
        squares = [value for value, kind in self.kinds.items() if kind == "square"]
        self.mutations = {state: self.random.choice(squares) for state in ("@s", "@t") if self.random.random() < 0.8}

    def pick(self, *kinds: str) -> str:
        # Recent values more often: that is where memory is reused.
        found = [value for value, kind in self.kinds.items() if not kinds or kind in kinds]
        return self.random.choice(found[-3:] if self.random.random() < 0.6 else found)

    def add(self, kind: str, call: str, run: Callable[[Values], torch.Tensor]) -> None:
        name = f"%v{len(self.lines)}"
        self.lines.append(f"  {name} = et.{call} : f32[{SHAPES[kind]}]")
        self.steps.append((name, run))
        self.kinds[name] = kind

    def add_step(self) -> None:
        choice = self.random.choice(["unary", "unary", "binary", "binary", "view", "mm", "permute", "sum"])
        if choice == "unary":
            op, a = self.random.choice(list(UNARY)), self.pick()
            self.add(self.kinds[a], f"aten.{op}.out(self={a})", lambda v: UNARY[op](v[a]))
        elif choice == "binary":
            op, a = self.random.choice(list(BINARY)), self.pick()
            b = self.pick(self.kinds[a])
            self.add(self.kinds[a], f"aten.{op}.out(self={a}, other={b})", lambda v: BINARY[op](v[a], v[b]))
        elif choice == "view":
            a = self.pick()
            kind = VIEWS[self.kinds[a]]
            self.add(kind, f"view(self={a}, size=[{SHAPES[kind]}])", lambda v: v[a].reshape(SIZES[kind]))
        elif choice == "mm":
            a, b = self.pick("rows", "square"), self.pick("square")
            self.add(self.kinds[a], f"aten.mm.out(self={a}, mat2={b})", lambda v: v[a] @ v[b])
        elif choice == "permute":
            a = self.pick("rows", "square")
            kind = "columns" if self.kinds[a] == "rows" else "square"
            self.add(kind, f"aten.permute_copy.out(self={a}, dims=[1, 0])", lambda v: v[a].T)
        else:
            a, b = self.pick("rows"), self.pick("square")
            self.add("square", f"aten.mm.out(self={b}, mat2={b})", lambda v: v[b] @ v[b])
            self.add("rows", f"aten.mm.out(self={a}, mat2={list(self.kinds)[-1]})", self.product(a))

    def product(self, a: str) -> Callable[[Values], torch.Tensor]:
        b = list(self.kinds)[-1]
        return lambda v: v[a] @ v[b]

    def text(self) -> str:
        returned = ", ".join(f"o{i} = {value}" for i, value in enumerate(self.outputs))
        mutated = "".join(f"  mutate {state} = {value}\n" for state, value in self.mutations.items())
        head = "graph g(%x: f32[n, 4], %z: f32[4, 4])\n  where n in 1..7 = 3\n"
        weights = "  weights @s: f32[4, 4] buffer, @t: f32[4, 4] buffer\n"
        return head + weights + "{\n" + "\n".join(self.lines) + f"\n  return {returned}\n{mutated}}}\n"

    def run(self, x: torch.Tensor, z: torch.Tensor, state: Values) -> list[torch.Tensor]:
        values = {"%x": x, "%z": z, **state}
        for name, step in self.steps:
            values[name] = step(values)
        state.update({name: values[value] for name, value in self.mutations.items()})
        return [values[value] for value in self.outputs]


@pytest.mark.parametrize("seeds", [range(first, first + 25) for first in range(0, 100, 25)], ids=str)
def test_random_graphs_give_the_values_of_torch(runtime: RuntimeProcess, tmp_path: Path, seeds: range) -> None:
    for seed in seeds:
        torch.manual_seed(seed)
        graph = RandomGraph(seed)
        state = {"@s": torch.rand(4, 4) / 4, "@t": torch.rand(4, 4) / 4}
        weights = {"s": state["@s"].clone(), "t": state["@t"].clone()}
        write_executorch(tmp_path / "m.pte", [Method("forward", core._modelport.parse_graph(graph.text(), weights))])
        calls = [(torch.rand(n, 4) / 4, torch.rand(4, 4) / 4) for n in (7, 2, 1, 5)]
        found = runtime.run(tmp_path / "m.pte", [("forward", list(call)) for call in calls])
        for call, outputs in zip(calls, found, strict=True):
            for y, expected in zip(outputs, graph.run(*call, state), strict=True):
                torch.testing.assert_close(y, expected, rtol=1e-4, atol=1e-4, msg=f"seed {seed}\n{graph.text()}")


MEMORY = """
import json, sys
import torch
sys.path.insert(0, sys.argv[2])
from peak_memory import peak_memory
from modelport.base import core
from modelport.exporters.executorch_file import Method, write_executorch

count, side = 24, 2048
names = [f"w{i}" for i in range(count)]
text = f"graph g(%x: f32[1, {side}])\\n  weights " + ", ".join(f"@{n}: f32[{side}, {side}]" for n in names) + "\\n{\\n"
last = "%x"
for i, name in enumerate(names):
    text += f"  %v{i} = et.aten.mm.out(self={last}, mat2=@{name}) : f32[1, {side}]\\n"
    last = f"%v{i}"
text += f"  return y = {last}\\n}}\\n"
like = torch.zeros(()).expand(side, side)
program = core._modelport.parse_graph(text, {name: like for name in names})
made = {name: (torch.float32, lambda i=i: torch.full((side, side), float(i))) for i, name in enumerate(names)}
with peak_memory() as peak:
    write_executorch(sys.argv[1], [Method("forward", program, made=made)])
print(json.dumps({"grown": peak.grown, "tensor": side * side * 4}))
"""


def test_writing_takes_the_memory_of_the_largest_tensor_and_not_of_all(tmp_path: Path) -> None:
    command = [sys.executable, "-c", MEMORY, str(tmp_path / "m.pte"), str(Path(__file__).parents[1])]
    said = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert (tmp_path / "m.pte").stat().st_size > 24 * said["tensor"]
    assert said["grown"] < 4 * said["tensor"], said
