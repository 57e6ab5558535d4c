"""A row of the zoo with its model, one capture and what eager PyTorch computes: the tests of every format share them.

The fixture is of the session so that pytest runs all tests of a row one after the other, with the same model."""

from __future__ import annotations

import functools
from typing import Any

import pytest
import torch

import modelport

from . import ROWS
from .row import Inputs, Row
from .sample import is_in_sample

ATOL = RTOL = 1e-3  # of the values that eager PyTorch gives; weights are random, activations of the order of one


class Shown:
    def __init__(self, row: Row):
        self.row = row
        self._wanted: dict[int, dict[str, torch.Tensor]] = {}

    @functools.cached_property
    def built(self) -> tuple[torch.nn.Module, Inputs]:
        return self.row.build()

    @functools.cached_property
    def exported(self) -> modelport.ExportedProgram:
        model, inputs = self.built
        return modelport.DynamoExporter().export(model, inputs, modelport.DynamoConfig(dynamic=True))

    @property
    def captured(self) -> modelport.Captured:
        return self.exported.captured

    def wanted(self, size: int) -> dict[str, torch.Tensor]:
        """What eager PyTorch gives at a size, by name."""
        if size not in self._wanted:
            result = seeded(self.built[0], self.row.inputs(size))
            # Copies: a result may be a buffer of the model, which the next call writes to.
            self._wanted[size] = {name: leaf.clone() for name, leaf in modelport.get_leaf_tensors(result).items()}
        return self._wanted[size]


def seeded(run: Any, inputs: Inputs) -> Any:
    torch.default_generator.manual_seed(0)
    with torch.no_grad():
        return run(**inputs)


def assert_same(got: list[torch.Tensor], wanted: dict[str, torch.Tensor], where: str) -> None:
    assert len(got) == len(wanted)
    for (name, want), have in zip(wanted.items(), got, strict=True):
        at = f"{name} {where}"
        assert have.dtype == want.dtype, at
        torch.testing.assert_close(
            have, want, atol=ATOL, rtol=RTOL, equal_nan=True, msg=lambda m, at=at: f"{at}: {m}"
        )


@functools.lru_cache(maxsize=1)
def _shown(name: str) -> Shown:
    return Shown(next(row for row in ROWS if str(row) == name))


@pytest.fixture(scope="session", params=[row for row in ROWS if is_in_sample(str(row))], ids=str)
def shown(request: pytest.FixtureRequest) -> Shown:
    return _shown(str(request.param))


@pytest.fixture(autouse=True)
def one_thread() -> Any:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
