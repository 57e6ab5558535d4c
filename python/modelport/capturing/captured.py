"""A captured program: readable, runnable at any admissible size, and comparable with the model it came from."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch

from ..artifacts.limits import check_frozen
from ..base.errors import problem
from ..base.structure import Flat, flatten, unflatten
from ..pages.of_graph import captured_report
from ..pages.report import write_report
from ..pages.runs import Runs
from ..values.graph_check import compare
from .report import text_of


class Attempt(NamedTuple):
    """One run of the search for a graph: what it was, why it was made, and what became of it."""

    name: str
    reason: str
    outcome: str


class Captured:
    """What `modelport.capture` gives. `print(captured)` shows the graph as text."""

    def __init__(self, program: Any, inputs: Flat, outputs: Flat, in_graph: list[bool]):
        self.program = program
        self.inputs = inputs  # the example inputs
        self.outputs = outputs  # structure of the result, and the leaves that are no tensors
        self.in_graph = in_graph
        self.left: list[Any] = []  # what the run of the example left in the model besides its buffers
        self.attempts: list[Attempt] = []  # in their order, those at other sizes after the first
        self.origin: dict[str, str] = {}  # how the model was made of its folder, for a check that makes it again
        self.example = ""  # who made the example inputs, where it was not the caller
        self._state: dict[str, torch.Tensor] = {}  # buffers, as the last run left them

    def __str__(self) -> str:
        return self.program.text()

    def __repr__(self) -> str:
        return (
            f"<Captured {self.program.node_count()} nodes, inputs {', '.join(n for n, _, _ in self.program.inputs())}>"
        )

    @property
    def lazy_program(self) -> Any:
        """The program for its graph alone: weights that lie in files are not read for it."""
        return self.program

    @property
    def output_names(self) -> list[str]:
        return self.program.output_names()

    @property
    def guards(self) -> list[dict[str, Any]]:
        """Conditions on sizes that the model asked for, each with its line."""
        return self.program.guards()

    @property
    def assumptions(self) -> list[dict[str, Any]]:
        """Branches that the model took on its data, each with its line."""
        return self.program.assumptions()

    def run(self, *args: Any, **inputs: Any) -> Any:
        """Executes the graph through libtorch and returns the model's own output structure. Buffers that the model
        writes to are kept from call to call, as the model's own are. Inputs that the graph is not for are refused."""
        outputs, self._state = self.program.run(self.tensors_of(args, inputs), state=self._state)
        return self.result_of(outputs)

    def reset(self) -> None:
        """Buffers as they were when the model was captured."""
        self._state = {}

    def frozen(self) -> dict[str, Any]:
        """Arguments of the example that are no tensors, by name: they are part of the graph."""
        pairs = zip(self.inputs.names, self.inputs.leaves, strict=True)
        return {name: leaf for name, leaf in pairs if not isinstance(leaf, torch.Tensor)}

    def result_of(self, outputs: list[Any]) -> Any:
        """What the graph gives, in the model's own structure."""
        lists = self.outputs.lists
        return unflatten(self.leaves_of(outputs), self.outputs.spec if lists is None else lists.spec)

    def leaves_of(self, outputs: list[Any]) -> list[Any]:
        """The leaves of the result. A list with a tensor for each item is one."""
        values = iter(outputs)
        leaves = [
            next(values) if inside else leaf for inside, leaf in zip(self.in_graph, self.outputs.leaves, strict=True)
        ]
        return leaves if self.outputs.lists is None else self.outputs.lists.leaves(leaves)

    def tensors_of(self, args: tuple[Any, ...], inputs: Mapping[str, Any]) -> list[torch.Tensor]:
        """The tensors of a call in the order of the graph's inputs."""
        top = list(dict.fromkeys(name.split(".")[0] for name in self.inputs.names))
        return list(self.tensors_by_name(dict(zip(top, args, strict=False)) | dict(inputs)).values())

    def tensors_by_name(
        self, inputs: Mapping[str, Any], *, renamed: Mapping[str, str] | None = None, takes: str = ""
    ) -> dict[str, torch.Tensor]:
        """The tensors of a call, nested or already flat, in the order of the graph's inputs; anything else must be as
        it was in the capture. `renamed` has other names that inputs may be given by, `takes` says what is taken."""
        flat = flatten(dict(inputs))
        values = dict(zip(flat.names, flat.leaves, strict=True))
        takes = takes or f"it takes: {', '.join(self.inputs.names)}"
        tensors = {}
        for name, example in zip(self.inputs.names, self.inputs.leaves, strict=True):
            if isinstance(example, torch.Tensor):
                given = values.pop(name if name in values else (renamed or {}).get(name, name), None)
                if not isinstance(given, torch.Tensor):
                    raise problem("E0301", f"the input {name} is missing", takes)
                tensors[name] = given
            elif name in values:
                check_frozen(name, values.pop(name), example)
        unknown = next((name for name, value in values.items() if value is not None), None)
        if unknown is not None:
            raise problem("E0301", f"the program takes no input {unknown!r}", takes)
        return tensors

    def report(self) -> str:
        """Dimensions with their ranges, what the model pinned, guards and assumptions, each with the model's line; and
        which captures were tried, why, and what became of them."""
        return "\n".join(filter(None, (text_of(self), self.example)))

    def report_html(self, path: str | os.PathLike[str], *, title: str = "") -> None:
        """Writes the same, and the graph by module down to its operators, as a page to look at: one file."""
        write_report(captured_report(self, title), Runs(), path)

    def check(self, model: Any, inputs: Mapping[str, Any], *, atol: float | None = None) -> Any:
        """Compares with the model on these inputs; names the first module and node where values part. `atol` is the
        tolerance, of which docs/cli.md tells."""
        return compare(self, model, dict(inputs), atol=atol)
