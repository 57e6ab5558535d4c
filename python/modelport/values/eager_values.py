"""What eager PyTorch computes on its way through a model: the referee where a graph's values differ from the model's.

Module calls are seen by hooks in the order in which they end, operators by a dispatch mode. Neither asks a capture,
which would share the mistake that is looked for."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ..models.state import state_of, submodules
from .tolerance import Tolerance, same_values, wide


class ModuleCall(NamedTuple):
    path: str  # as nodes of a graph have it
    inputs: list[torch.Tensor]
    outputs: list[torch.Tensor]


def module_calls(model: Any, inputs: Mapping[str, Any]) -> list[ModuleCall]:
    """Every call of a module, innermost first, with copies of the tensors that it took and gave."""
    calls: list[ModuleCall] = []
    taken: list[list[torch.Tensor]] = []

    def begins(_path: str, args: Any) -> None:
        taken.append([tensor.detach().clone() for tensor in tensors_in(args)])

    def ends(path: str, result: Any) -> None:
        calls.append(ModuleCall(path, taken.pop(), [tensor.detach().clone() for tensor in tensors_in(result)]))

    with _hooked(model, begins, ends):
        _run(model, inputs)
    return calls


class OperatorResult(NamedTuple):
    op: str
    module: str
    tensor: torch.Tensor


def operator_results(model: Any, inputs: Mapping[str, Any], within: str | None = None) -> list[OperatorResult]:
    """What each operator gave; `within` a module and those beneath it, or everywhere."""
    stack: list[str] = [""]
    found: list[OperatorResult] = []

    def keep(op: str, result: Any) -> None:
        if within is None or is_beneath(stack[-1], within):
            found.extend(OperatorResult(op, stack[-1], tensor.detach().clone()) for tensor in tensors_in(result))

    with _hooked(model, lambda path, _: stack.append(path), lambda _path, _: stack.pop()), _Operators(keep):
        _run(model, inputs)
    return found


class _Operators(TorchDispatchMode):
    def __init__(self, keep: Callable[[str, Any], None]):
        super().__init__()
        self.keep = keep

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        op = str(func).removesuffix(".default")
        self.keep(op, result)
        if func._schema.is_mutable:  # where a graph has no views, the whole is what is written
            self.keep(op, [tensor._base for tensor in tensors_in(result) if tensor._base is not None])
        return result


@contextmanager
def _hooked(model: Any, begins: Callable[[str, Any], None], ends: Callable[[str, Any], Any]) -> Iterator[None]:
    def watch(module: torch.nn.Module, name: str) -> None:
        def before(_module: Any, args: Any, kwargs: Any) -> None:  # a result would replace them
            begins(name, (args, kwargs))

        def after(_module: Any, _args: Any, result: Any) -> None:
            ends(name, result)

        stack.callback(module.register_forward_pre_hook(before, with_kwargs=True, prepend=True).remove)
        stack.callback(module.register_forward_hook(after).remove)

    with ExitStack() as stack:
        for path, module in submodules(model if isinstance(model, torch.nn.Module) else None):
            watch(module, path or type(module).__name__)
        yield


def _run(model: Any, inputs: Mapping[str, Any]) -> None:
    """Leaves the model, the inputs and the random state as they are."""
    rng = torch.get_rng_state()
    state = state_of(model if isinstance(model, torch.nn.Module) else None)
    try:
        with torch.no_grad(), state.kept():
            given = copy.deepcopy(dict(inputs))
            positional = [given.pop(name) for name in list(given) if name.startswith("*")]
            model(*positional, **given)
    finally:
        torch.set_rng_state(rng)


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from tensors_in(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from tensors_in(item)


def is_beneath(path: str, module: str) -> bool:
    return path == module or path.startswith(f"{module}.")


class Known(NamedTuple):
    tensor: torch.Tensor
    amount: float
    note: Any


class Pool:
    """Tensors among which one looks for another with the same values."""

    def __init__(self, tolerance: Tolerance | None = None):
        self.tolerance = tolerance
        self._known: dict[tuple[int, bool], list[Known]] = {}

    def add(self, tensor: torch.Tensor, note: Any = None) -> None:
        tensor = (torch.view_as_real(tensor) if tensor.is_complex() else tensor).detach()
        self._known.setdefault(_key(tensor), []).append(Known(tensor, _amount(tensor), note))

    def matches(self, value: torch.Tensor) -> Iterator[Known]:
        """Those of the same shape and values."""
        value = torch.view_as_real(value) if value.is_complex() else value
        amount = _amount(value)
        for known in self._near(value, amount):
            if known.tensor.shape == value.shape and self._same(value, known.tensor):
                yield known

    def has(self, value: torch.Tensor) -> bool:
        """Whether some tensor has these numbers, in this shape or, where none has this shape, in another order."""
        value = torch.view_as_real(value) if value.is_complex() else value
        amount, ordered = _amount(value), None
        for known in self._near(value, amount):
            if known.tensor.shape == value.shape:
                if self._same(value, known.tensor):
                    return True
                continue
            if ordered is None:
                ordered = value.flatten().sort().values
            if self._same(ordered, known.tensor.flatten().sort().values):
                return True
        return False

    def alike(self, value: torch.Tensor) -> Sequence[Known]:
        """Those with as many elements, whatever they are."""
        return self._known.get(_key(value), ())

    def _near(self, value: torch.Tensor, amount: float) -> Iterator[Known]:
        slack = 4 * (self.tolerance or Tolerance.of({value.dtype})).atol
        for known in self.alike(value):
            if abs(known.amount - amount) <= slack * max(known.amount, amount):
                yield known

    def _same(self, value: torch.Tensor, known: torch.Tensor) -> bool:
        return same_values(value.to(known.dtype), known, self.tolerance)


def _key(tensor: torch.Tensor) -> tuple[int, bool]:
    return tensor.numel(), tensor.is_floating_point()


def _amount(tensor: torch.Tensor) -> float:
    """The sum of magnitudes: values that are near have nearly the same."""
    return wide(tensor).abs().nan_to_num(posinf=1.0).sum().item()
