"""Programs in ExecuTorch's dialect, written as `.pte` files; see src/backends/executorch/emit.h for the dialect."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..artifacts.pte import without_schemas
from ..base import core


@dataclass
class Method:
    """One method of the file: a program of `et.*` nodes, bounds of its axes by name, and where its weights are."""

    name: str
    program: core.Program
    bounds: Mapping[str, int] = field(default_factory=dict)
    frozen: Mapping[str, Any] = field(default_factory=dict)  # arguments of the call that became part of the program
    places: Mapping[str, Any] = field(default_factory=dict)
    made: Mapping[str, Any] = field(default_factory=dict)

    def row(self) -> dict[str, Any]:
        """As the writer takes it."""
        return {
            "name": self.name,
            "program": self.program,
            "bounds": dict(self.bounds),
            "frozen": dict(self.frozen),
            "places": dict(self.places),
            "made": dict(self.made),
        }


@dataclass
class Delegate:
    """What `et.delegate` names by its number: a payload for a backend of the runtime."""

    backend: str
    payload: bytes
    compile_specs: Mapping[str, bytes] = field(default_factory=dict)


# Calling a delegate costs something: one with fewer nodes and no product is left to kernels.
LEAST_NODES = 8


def lower(
    program: core.Program, config: Any, *, least_nodes: int = LEAST_NODES
) -> tuple[core.Program, list[tuple[str, str, int]]]:
    """A captured program in ExecuTorch's dialect, by the recipe and the weights' types of `config`; and of what XNNPACK
    leaves to kernels the operator, the reason and how many there are."""
    linear = None if config.qlinear is None else (config.qlinear, config.qlinear_group_size)
    embedding = None if config.qembedding is None else (config.qembedding, config.qembedding_group_size)
    if config.backend == "portable":
        return core.lower_executorch(program, embedding), []
    lowered, _, left = core._modelport.lower_xnnpack(program, linear, embedding, least_nodes)
    return lowered, left


def write_executorch(
    path: str | os.PathLike[str],
    methods: Sequence[Method],
    *,
    constant_methods: Mapping[str, Any] | None = None,
    delegates: Sequence[Delegate] = (),
    named_data: Mapping[str, bytes] | None = None,
    weights_beside: bool = False,
    checks_as_outputs: bool = False,
    with_limits: bool = True,
) -> dict[str, Any]:
    """Writes one `.pte` file; with `weights_beside`, its weights go into a `.ptd` file of the same name.

    Returns the files, and of each method the bytes of its arena and of its state.
    """
    write = getattr(core._modelport, "write_executorch", None)
    if write is None:
        raise without_schemas("this modelport was built without ExecuTorch's schemas")
    request = {
        "methods": [method.row() for method in methods],
        "constant_methods": dict(constant_methods or {}),
        "delegates": [
            {"backend": one.backend, "payload": one.payload, "compile_specs": dict(one.compile_specs)}
            for one in delegates
        ],
        "named_data": dict(named_data or {}),
        "weights_beside": weights_beside,
        "checks_as_outputs": checks_as_outputs,
        "with_limits": with_limits,
    }
    return write(os.fspath(path), request)
