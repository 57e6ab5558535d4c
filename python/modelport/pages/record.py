"""What is known of an artifact, whatever its format: the record that pages show and that `modelport diff` compares."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

from .contents import Contents

_DEEPEST = 64
_COUNTS = {"i64", "i32", "bool", "int64", "int32"}


@dataclasses.dataclass(frozen=True)
class Place:
    """A line of the model."""

    line: str = ""  # "modeling_bert.py:84"; empty: unknown
    function: str = ""  # "BertEmbeddings.forward"


@dataclasses.dataclass(frozen=True)
class Node:
    op: str
    module: str  # path, such as "bert.encoder.layer.0"; empty: the model itself
    place: Place
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    text: str = ""  # arguments and types, where the format has them as text


@dataclasses.dataclass(frozen=True)
class Weight:
    name: str
    dtype: str
    shape: tuple[int, ...]
    bytes: int
    file: str = ""  # where it is; empty: in the artifact itself
    contents: Contents | None = dataclasses.field(default=None, compare=False, repr=False)

    @property
    def parameters(self) -> int:
        """Numbers that were learned: none in positions, masks and sizes."""
        return 0 if self.dtype in _COUNTS else math.prod(self.shape)


@dataclasses.dataclass(frozen=True)
class Value:
    """An input or an output."""

    name: str
    dtype: str
    shape: tuple[str, ...] | None


@dataclasses.dataclass(frozen=True)
class Reason:
    """Who bounded or pinned an axis."""

    what: str
    place: Place = Place()


@dataclasses.dataclass(frozen=True)
class Axis:
    name: str
    sizes: str  # "1 to 512", "8"
    example: int | None = None
    reasons: tuple[Reason, ...] = ()


@dataclasses.dataclass
class Part:
    """One graph: a model, a part of a model that generates, a method of a program."""

    name: str
    facts: dict[str, str] = dataclasses.field(default_factory=dict)
    inputs: list[Value] = dataclasses.field(default_factory=list)
    outputs: list[Value] = dataclasses.field(default_factory=list)
    axes: list[Axis] = dataclasses.field(default_factory=list)
    limits: list[str] = dataclasses.field(default_factory=list)
    nodes: list[Node] = dataclasses.field(default_factory=list)
    weights: list[Weight] = dataclasses.field(default_factory=list)
    operators: dict[str, int] = dataclasses.field(default_factory=dict)  # with those of inner graphs
    fusions: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    delegates: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    attempts: list[tuple[str, str, str]] = dataclasses.field(default_factory=list)  # what, why, what became of it
    missing: list[str] = dataclasses.field(default_factory=list)  # what the format does not keep, in words

    @property
    def node_count(self) -> int:
        return sum(self.operators.values())


@dataclasses.dataclass
class Report:
    title: str
    path: str
    kind: str  # "ONNX", "PyTorch program (.pt2)", ...
    facts: dict[str, str]
    parts: list[Part]
    files: dict[str, int] = dataclasses.field(default_factory=dict)  # in bytes
    metadata: dict[str, str] = dataclasses.field(default_factory=dict)
    whole: list[str] = dataclasses.field(default_factory=list)  # files that hold more than the record has


@dataclasses.dataclass
class Module:
    """A row of the module tree; the numbers are those of all that is in it."""

    path: str
    parent: int  # -1: none
    nodes: int = 0
    parameters: int = 0
    bytes: int = 0

    @property
    def name(self) -> str:
        return self.path.rpartition(".")[2]


class ModuleTree:
    """Modules in the order of their first node; `node_homes` and `weight_homes` say in which of them each is."""

    def __init__(self, part: Part):
        self.modules = [Module("", -1)]
        self._index = {"": 0}
        self.node_homes = [self._at(node.module) for node in part.nodes]
        users: dict[str, list[int]] = {}
        for node, home in zip(part.nodes, self.node_homes, strict=True):
            for name in node.inputs:
                users.setdefault(name, []).append(home)
        self.weight_homes = [self._home(weight.name, users.get(weight.name, [])) for weight in part.weights]
        for home in self.node_homes:
            for module in self._upward(home):
                module.nodes += 1
        for home, weight in zip(self.weight_homes, part.weights, strict=True):
            for module in self._upward(home):
                module.parameters += weight.parameters
                module.bytes += weight.bytes

    def _at(self, path: str) -> int:
        if path.count(".") >= _DEEPEST:  # no model is; a name from a stranger may be
            path = ".".join(path.split(".")[:_DEEPEST])
        if path not in self._index:
            parent = self._at(path.rpartition(".")[0])
            self._index[path] = len(self.modules)
            self.modules.append(Module(path, parent))
        return self._index[path]

    def _home(self, name: str, users: list[int]) -> int:
        """A weight belongs to the deepest module that has nodes and begins its name; else to the one that its name
        says, or, where it says none, to the deepest that has all its users."""
        path = name.rpartition(".")[0]
        above = path
        while above:
            if above in self._index:
                return self._index[above]
            above = above.rpartition(".")[0]
        dotted = path and all(piece.isidentifier() or piece.isdecimal() for piece in path.split("."))
        return self._at(path) if dotted else self._shared(users)

    def _shared(self, homes: list[int]) -> int:
        found = homes[0] if homes else 0
        for home in homes[1:]:
            while found != home:  # a module stands before those in it
                if found > home:
                    found = self.modules[found].parent
                else:
                    home = self.modules[home].parent
        return found

    def _upward(self, index: int) -> Iterator[Module]:
        while index >= 0:
            yield self.modules[index]
            index = self.modules[index].parent


def bytes_by_type(part: Part) -> dict[str, int]:
    sizes: Counter[str] = Counter()
    for weight in part.weights:
        sizes[weight.dtype] += weight.bytes
    return dict(sizes.most_common())


def range_text(low: int | None, high: int | None) -> str:
    if low is not None and low == high:
        return str(low)
    return f"{0 if low is None else low} or more" if high is None else f"{0 if low is None else low} to {high}"
