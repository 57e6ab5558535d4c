"""Numbers that a small integer type does not hold: torch wraps them around in that type, and so do ONNX files and
ExecuTorch programs, whose kernels compute in a larger one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from executorch_process import RuntimeProcess

import modelport

OPERATORS: dict[str, Callable[[Any, Any], torch.Tensor]] = {
    "div, towards zero": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
    "div, down": lambda x, y: torch.div(x, y, rounding_mode="floor"),
    "div": lambda x, y: x / y,
    "floor_divide of a number": lambda x, y: y // (x + 1),
    "remainder": lambda x, y: x % y,
    "remainder of a number": lambda x, y: y % (x + 1),
    "fmod": torch.fmod,
    "sub": lambda x, y: y - x,
    "mul": lambda x, y: x * y,
    "gt": lambda x, y: x > y,
    "le": lambda x, y: x <= y,
    "clamp from below": lambda x, y: x.clamp(min=y),
    "clamp from above": lambda x, y: x.clamp(max=y),
    "maximum": lambda x, y: torch.maximum(x, torch.as_tensor(y)),
    "where": lambda x, y: torch.where(x > 2, x, y),
    "written in place": lambda x, y: x.clone().div_(y, rounding_mode="trunc"),
}
NUMBERS = {torch.uint8: (-2, 300), torch.int8: (200, -200), torch.int16: (40000,), torch.int32: (-3,)}
CASES = [(dtype, number) for dtype, numbers in NUMBERS.items() for number in numbers]


class Applied(torch.nn.Module):
    def __init__(self, operator: Callable[[Any, Any], torch.Tensor], number: int, *, as_tensor: bool):
        super().__init__()
        self.operator, self.number, self.as_tensor = operator, number, as_tensor

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self.operator(x, y if self.as_tensor else self.number)


Run = Callable[[Applied, dict[str, torch.Tensor]], torch.Tensor]


def in_onnxruntime(model: Applied, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
    (got,) = modelport.get_leaf_tensors(modelport.OnnxExporter().export(model, inputs)(**inputs)).values()
    return got


@pytest.fixture(scope="module")
def in_executorch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    runtime, file = RuntimeProcess(), tmp_path_factory.mktemp("narrow") / "m.pte"

    def run(model: Applied, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        modelport.ExecutorchExporter().export(model, inputs).save(file)
        given = [inputs["x"], inputs["y"]]
        ((got,),) = runtime.run(Path(file), [("forward", given)])
        return got

    yield run
    runtime.close()


def differences(run: Run, dtype: torch.dtype, number: int, *, as_tensor: bool) -> dict[str, Any]:
    inputs = {"x": torch.arange(6).to(dtype), "y": torch.tensor(number)}
    found = {}
    for name, operator in OPERATORS.items():
        model = Applied(operator, number, as_tensor=as_tensor).eval()
        try:
            want = model(**inputs)
        except RuntimeError:
            continue  # torch refuses the number
        got = run(model, inputs)
        if got.dtype != want.dtype or not torch.allclose(got.double(), want.double(), rtol=1e-6, atol=0):
            found[name] = got.tolist(), want.tolist()
    return found


@pytest.mark.parametrize("as_tensor", [False, True], ids=["a number", "a tensor without axes"])
@pytest.mark.parametrize(("dtype", "number"), CASES, ids=str)
def test_onnxruntime_gives_what_torch_gives(dtype: torch.dtype, number: int, as_tensor: bool) -> None:
    assert differences(in_onnxruntime, dtype, number, as_tensor=as_tensor) == {}


@pytest.mark.parametrize("as_tensor", [False, True], ids=["a number", "a tensor without axes"])
@pytest.mark.parametrize(("dtype", "number"), CASES, ids=str)
def test_executorch_gives_what_torch_gives(
    dtype: torch.dtype, number: int, as_tensor: bool, in_executorch: Run
) -> None:
    assert differences(in_executorch, dtype, number, as_tensor=as_tensor) == {}


POWERS: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "of two tensors": torch.pow,
    "two to a tensor": lambda x, y: 2**y,
    "three to a tensor": lambda x, y: 3**y,
    "minus one to a tensor": lambda x, y: (-1) ** y,
    "to the power of 0": lambda x, y: x**0,
    "to the power of 5": lambda x, y: x**5,
    "to the power of 41": lambda x, y: x**41,
    "to the power of a size": lambda x, y: x ** y.shape[0],
}


def differing_powers(run: Run, dtype: torch.dtype) -> dict[str, Any]:
    numbers = torch.tensor([0, 1, 2, 3, 7, 10, -1, -2, -5]).to(dtype)
    exponents = torch.tensor([0, 1, 2, 8, 31, 63, 64, 70, 101, -1, -2, -3]).to(dtype)
    grid = torch.cartesian_prod(numbers, exponents)
    inputs = {"x": grid[:, 0].contiguous(), "y": grid[:, 1].contiguous()}
    found = {}
    for name, power in POWERS.items():
        model = Applied(power, 0, as_tensor=True).eval()
        try:
            want = model(**inputs)
        except RuntimeError:
            continue  # torch refuses the number
        got = run(model, inputs)
        wrong = [(*pair.tolist(), a.item(), b.item()) for pair, a, b in zip(grid, got, want, strict=True) if a != b]
        if got.dtype != want.dtype or wrong:
            found[name] = got.dtype, wrong[:5]
    return found


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8], ids=str)
def test_powers_that_no_integer_holds_wrap_around_in_onnxruntime(dtype: torch.dtype) -> None:
    assert differing_powers(in_onnxruntime, dtype) == {}


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8], ids=str)
def test_powers_that_no_integer_holds_wrap_around_in_executorch(dtype: torch.dtype, in_executorch: Run) -> None:
    assert differing_powers(in_executorch, dtype) == {}


def test_zero_to_a_negative_power_is_zero_among_integers() -> None:
    inputs = {"x": torch.tensor([0, 1, -1, 2]), "y": torch.tensor([-3, -3, -3, 3])}
    model = Applied(torch.pow, 0, as_tensor=True).eval()
    assert in_onnxruntime(model, inputs).tolist() == model(**inputs).tolist() == [0, 1, -1, 8]
